// SPDX-License-Identifier: MIT

package main

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

func readKilobytes(path, field string) int {
	file, err := os.Open(path)
	if err != nil {
		fail(err.Error())
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) > 1 && words[0] == field {
			number, _ := strconv.Atoi(words[1])
			return number
		}
	}
	fail(path + ": no " + field)
	return 0
}

// Resident memory and page tables.
func footprint() int {
	return 1024 * (readKilobytes("/proc/self/smaps_rollup", "Rss:") +
		readKilobytes("/proc/self/status", "VmPTE:"))
}

// Goroutines that sleep for an hour.
func memory() {
	count := scale(100000, million)
	var asleep sync.WaitGroup
	asleep.Add(count)
	before := footprint()
	cpu := cpuNow()
	begin := time.Now()
	for i := 0; i < count; i++ {
		go func() {
			asleep.Done()
			time.Sleep(time.Hour)
		}()
	}
	asleep.Wait()
	elapsed := time.Since(begin)
	cpu = cpuNow() - cpu
	time.Sleep(time.Millisecond)
	print("memory_task", "bytes", float64(footprint()-before)/float64(count))
	print("memory_start", "ns", float64(elapsed)/float64(count))
	print("memory_start.cpu", "ns", float64(cpu)/float64(count))
}
