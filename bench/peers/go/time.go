// SPDX-License-Identifier: MIT

package main

import (
	"runtime"
	"sort"
	"sync"
	"time"
)

const million = 1000000

// xorshift: the same deadlines as in Pirn's program.
type source uint64

func (s *source) draw() uint64 {
	x := uint64(*s)
	x ^= x << 13
	x ^= x >> 7
	x ^= x << 17
	*s = source(x)
	return x
}

func (s *source) deadline() time.Duration {
	return 10*time.Minute + time.Duration(s.draw()%uint64(time.Hour))
}

func nothing() {}

// Stop a timer and set it anew.  No memory is allocated, and the runtime leaves
// it where it is in its heap until it looks there.
func reset(timer **time.Timer, d time.Duration) {
	(*timer).Stop()
	(*timer).Reset(d)
}

// Stop a timer and make another: what a deadline for each request comes to.
func renew(timer **time.Timer, d time.Duration) {
	(*timer).Stop()
	*timer = time.AfterFunc(d, nothing)
}

// By processor time, the collector's included.
func timers(name string, live int, inOrder bool,
	step func(timer **time.Timer, d time.Duration)) {
	rounds := scale(200000, million)
	random := source(88172645463325252)
	all := make([]*time.Timer, live)
	for i := range all {
		all[i] = time.AfterFunc(random.deadline(), nothing)
	}
	next := 0
	churn := func() {
		for i := 0; i < rounds; i++ {
			index := next
			next++
			if !inOrder {
				index = int(random.draw() >> 16)
			}
			step(&all[index%live], random.deadline())
		}
	}
	churn()
	for i := 0; i < chosen.samples; i++ {
		begin := cpuNow()
		churn()
		print(name, "ns", float64(cpuNow()-begin)/float64(rounds))
	}
}

func percentile(sorted []int64, percent int) float64 {
	return float64(sorted[(len(sorted)-1)*percent/100])
}

func sortNumbers(numbers []int64) {
	sort.Slice(numbers, func(i, k int) bool { return numbers[i] < numbers[k] })
}

// Goroutines that sleep until moments spread over a second, the first of them
// once all have been started.
func timerLate() {
	count := scale(20000, 100000)
	late := make([]int64, count)
	for sample := 0; sample <= chosen.samples; sample++ {
		random := source(88172645463325252)
		var group sync.WaitGroup
		group.Add(count)
		cpu := cpuNow()
		base := time.Now().Add(time.Second)
		for i := 0; i < count; i++ {
			until := base.Add(time.Duration(random.draw() % uint64(time.Second)))
			go func(i int) {
				time.Sleep(time.Until(until))
				late[i] = int64(time.Since(until))
				group.Done()
			}(i)
		}
		group.Wait()
		cpu = cpuNow() - cpu
		if sample == 0 {
			continue
		}
		sortNumbers(late)
		print("timer_late_p50", "ns", percentile(late, 50))
		print("timer_late_p99", "ns", percentile(late, 99))
		print("timer_late_cpu", "ns", float64(cpu)/float64(count))
	}
}

// A goroutine with a thread of its own sends to one that waits.  Between two
// wakes it sleeps by time.Sleep: a thread that slept by a system call would keep
// its place from the one it woke.
func wake() {
	const gap = 200 * time.Microsecond
	count := scale(500, 2000)
	latencies := make([]int64, count)
	for sample := 0; sample <= chosen.samples; sample++ {
		box := make(chan time.Time, 1)
		done := make(chan struct{})
		go func() {
			for i := range latencies {
				sent := <-box
				latencies[i] = int64(time.Since(sent))
			}
			close(done)
		}()
		go func() {
			runtime.LockOSThread()
			for i := 0; i < count; i++ {
				time.Sleep(gap)
				box <- time.Now()
			}
		}()
		<-done
		sortNumbers(latencies)
		if sample > 0 {
			print("wake_p50", "ns", percentile(latencies, 50))
			print("wake_p99", "ns", percentile(latencies, 99))
		}
	}
}
