// SPDX-License-Identifier: MIT

package main

import (
	"runtime"
	"sync"
)

func yield() {
	count := scale(500000, 2000000)
	measure("yield_1000", count, func() {
		var group sync.WaitGroup
		group.Add(thousand)
		for i := 0; i < thousand; i++ {
			go func() {
				for k := 0; k < count/thousand; k++ {
					runtime.Gosched()
				}
				group.Done()
			}()
		}
		group.Wait()
	})
}

// Pairs that pass a word to and fro by two channels with room for one.
func pingPong() {
	count := scale(100000, 500000)
	measure("ping_pong", count, func() {
		var group sync.WaitGroup
		group.Add(2 * thousand)
		for i := 0; i < thousand; i++ {
			ping, pong := make(chan uint64, 1), make(chan uint64, 1)
			go func() {
				for k := 0; k < count/thousand; k++ {
					ping <- uint64(k)
					<-pong
				}
				group.Done()
			}()
			go func() {
				for k := 0; k < count/thousand; k++ {
					pong <- <-ping
				}
				group.Done()
			}()
		}
		group.Wait()
	})
}
