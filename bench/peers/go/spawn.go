// SPDX-License-Identifier: MIT

package main

import (
	"runtime"
	"sync"
)

const fanOut = 10

// A goroutine that ends at once; the group says when all have.
func startBrief(group *sync.WaitGroup) {
	go group.Done()
}

func spawnBatches(batches, batch int) {
	var group sync.WaitGroup
	for i := 0; i < batches; i++ {
		group.Add(batch)
		for k := 0; k < batch; k++ {
			startBrief(&group)
		}
		group.Wait()
	}
}

func spawnBurst() {
	count := scale(100000, 1000000)
	measure("spawn_burst", count, func() { spawnBatches(1, count) })
}

func spawnBatch() {
	count := scale(100000, 1000000)
	measure("spawn_batch", count,
		func() { spawnBatches(count/thousand, thousand) })
}

// There is no outside in Go: the starters are goroutines with a thread of their
// own each, and need one of the GOMAXPROCS places to run.
func spawnOutside() {
	const threads = 2
	count := scale(50000, 500000)
	measure("spawn_outside", count, func() {
		var started, group sync.WaitGroup
		group.Add(count)
		started.Add(threads)
		for i := 0; i < threads; i++ {
			go func() {
				runtime.LockOSThread()
				for k := 0; k < count/threads; k++ {
					startBrief(&group)
				}
				started.Done()
			}()
		}
		started.Wait()
		group.Wait()
	})
}

func chainLink(left int, end chan struct{}) {
	if left == 0 {
		close(end)
		return
	}
	go chainLink(left-1, end)
}

func chain() {
	count := scale(50000, 500000)
	measure("chain", count, func() {
		end := make(chan struct{})
		go chainLink(count-1, end)
		<-end
	})
}

// A node gets the sums of its ten parts by a channel that has room for all, so
// that no part waits.
func node(above chan int, first, count int) {
	if count == 1 {
		above <- first
		return
	}
	parts := make(chan int, fanOut)
	for i := 0; i < fanOut; i++ {
		go node(parts, first+i*(count/fanOut), count/fanOut)
	}
	sum := 0
	for i := 0; i < fanOut; i++ {
		sum += <-parts
	}
	above <- sum
}

func skynet() {
	leaves := scale(100000, million)
	tasks := 0
	for level := leaves; level > 0; level /= fanOut {
		tasks += level
	}
	measure("skynet", tasks, func() {
		root := make(chan int, 1)
		go node(root, 0, leaves)
		if <-root != leaves*(leaves-1)/2 {
			fail("the sum of the leaves")
		}
	})
}
