// SPDX-License-Identifier: MIT

package main

import "sync"

const (
	crowd    = 16
	capacity = 1024
)

func mutexAlone() {
	count := scale(100000, 2000000)
	var mutex sync.Mutex
	measure("mutex_lock", count, func() {
		for i := 0; i < count; i++ {
			mutex.Lock()
			mutex.Unlock()
		}
	})
}

func mutexCrowd() {
	each := scale(5000, 60000)
	var mutex sync.Mutex
	measure("mutex_lock_16", crowd*each, func() {
		var group sync.WaitGroup
		counter := 0
		group.Add(crowd)
		for i := 0; i < crowd; i++ {
			go func() {
				for k := 0; k < each; k++ {
					mutex.Lock()
					counter++
					mutex.Unlock()
				}
				group.Done()
			}()
		}
		group.Wait()
		if counter != crowd*each {
			fail("a lock that let two in")
		}
	})
}

// One receiver, who takes one message at a time until the channel is closed.
func messages(name string, senders int) {
	count := scale(400000, 4000000)
	each := count / senders
	measure(name, count, func() {
		var group sync.WaitGroup
		channel := make(chan uint64, capacity)
		sum := make(chan uint64)
		go func() {
			var total uint64
			for message := range channel {
				total += message
			}
			sum <- total
		}()
		group.Add(senders)
		for i := 0; i < senders; i++ {
			go func() {
				for k := 1; k <= each; k++ {
					channel <- uint64(k)
				}
				group.Done()
			}()
		}
		group.Wait()
		close(channel)
		if <-sum != uint64(senders*each*(each+1)/2) {
			fail("the sum of all messages")
		}
	})
}
