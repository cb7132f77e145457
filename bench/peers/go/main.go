// SPDX-License-Identifier: MIT

// The Go side of the comparison: the rows of bench/README.md as a Go
// programmer writes them, with goroutines, channels and the standard library
// and nothing else.
//
//	peer_go ROW [--workers N] [--samples N] [--quick]
//
// prints one JSON object a line for each value, as Pirn's programs do.  `echo`,
// `hello` and `nethttp` are servers: they print "port N" and serve.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

const thousand = 1000

type options struct {
	workers int
	samples int
	quick   bool
}

var chosen = options{workers: 1, samples: 3}

// With --quick `small`, else `large`.
func scale(small, large int) int {
	if chosen.quick {
		return small
	}
	return large
}

func print(name, unit string, value float64) {
	fmt.Printf("{\"name\": %q, \"unit\": %q, \"value\": %.4f}\n",
		name, unit, value)
}

func fail(what string) {
	fmt.Fprintln(os.Stderr, "peer_go:", what)
	os.Exit(1)
}

// Processor time of all threads.
func cpuNow() time.Duration {
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// Time `run` once to warm up, then once for each sample, and print ns for each
// of its operations: what passed, and as NAME.cpu the processor time.
func measure(name string, operations int, run func()) {
	run()
	for i := 0; i < chosen.samples; i++ {
		cpu := cpuNow()
		begin := time.Now()
		run()
		elapsed := time.Since(begin)
		cpu = cpuNow() - cpu
		print(name, "ns", float64(elapsed)/float64(operations))
		print(name+".cpu", "ns", float64(cpu)/float64(operations))
	}
}

var rows = map[string]func(){
	"spawn_burst":       spawnBurst,
	"spawn_batch":       spawnBatch,
	"spawn_outside":     spawnOutside,
	"chain":             chain,
	"skynet":            skynet,
	"yield_1000":        yield,
	"ping_pong":         pingPong,
	"mutex_lock":        mutexAlone,
	"mutex_lock_16":     mutexCrowd,
	"mpsc_1":            func() { messages("mpsc_1", 1) },
	"mpsc_4":            func() { messages("mpsc_4", 4) },
	"wake":              wake,
	"timer_1":           func() { timers("timer_1", 1, true, reset) },
	"timer_1m_in_order": func() { timers("timer_1m_in_order", million, true, reset) },
	"timer_1m_random":   func() { timers("timer_1m_random", million, false, reset) },
	"timer_1_new":       func() { timers("timer_1_new", 1, true, renew) },
	"timer_1m_in_order_new": func() {
		timers("timer_1m_in_order_new", million, true, renew)
	},
	"timer_1m_random_new": func() {
		timers("timer_1m_random_new", million, false, renew)
	},
	"timer_late": timerLate,
	"memory":     memory,
	"echo":       serveEcho,
	"hello":      serveHello,
	"nethttp":    serveNetHTTP,
}

func numberAt(i int) int {
	if i >= len(os.Args) {
		fail("a number is missing")
	}
	number, err := strconv.Atoi(os.Args[i])
	if err != nil {
		fail(err.Error())
	}
	return number
}

func main() {
	if len(os.Args) < 2 || rows[os.Args[1]] == nil {
		fail("usage: peer_go ROW [--workers N] [--samples N] [--quick]")
	}
	for i := 2; i < len(os.Args); i++ {
		switch os.Args[i] {
		case "--quick":
			chosen.quick = true
		case "--workers":
			i++
			chosen.workers = numberAt(i)
		case "--samples":
			i++
			chosen.samples = numberAt(i)
		default:
			fail("unknown: " + os.Args[i])
		}
	}
	runtime.GOMAXPROCS(chosen.workers)
	rows[os.Args[1]]()
}
