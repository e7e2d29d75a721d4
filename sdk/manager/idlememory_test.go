package manager

import (
	"context"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

func TestIdleMemory(t *testing.T) {
	const mebibyte = 1 << 20
	for _, test := range []struct {
		reason   string
		minutes  []memoryUsage // at the start, and after each minute
		returned int
	}{
		{"an idle process with unused memory", []memoryUsage{{10, 50 * mebibyte}, {10, 50 * mebibyte}}, 1},
		{"the runtime's own garbage collection", []memoryUsage{{10, 50 * mebibyte}, {11, 50 * mebibyte}}, 1},
		{"the process works", []memoryUsage{{10, 50 * mebibyte}, {12, 50 * mebibyte}}, 0},
		{"little memory is unused", []memoryUsage{{10, mebibyte}, {10, mebibyte}}, 0},
		{"it works for two minutes", []memoryUsage{{10, 0}, {40, 50 * mebibyte}, {80, 50 * mebibyte}, {80, 50 * mebibyte}}, 1},
		{"memory was returned already", []memoryUsage{{10, 50 * mebibyte}, {10, 50 * mebibyte}, {10, mebibyte}, {11, mebibyte}}, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			returned, next := 0, 0
			r := &memoryReturner{
				clock: clock.RealClock{},
				read: func() memoryUsage {
					next++
					return test.minutes[min(next, len(test.minutes))-1]
				},
				release: func() { returned++; next-- }, // What is read after it has the same time.
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(len(test.minutes)-1)*idleInterval+idleInterval/2)
			defer cancel()
			if err := r.Start(ctx); err != nil {
				t.Errorf("%s: %v", test.reason, err)
			}
			if returned != test.returned {
				t.Errorf("%s: memory was returned %d times, want %d", test.reason, returned, test.returned)
			}
		})
	}
}

// TestReadUsage observes real memory.
func TestReadUsage(t *testing.T) {
	debug.FreeOSMemory()
	before := readMemoryUsage()
	allocate(64)
	runtime.GC()
	with := readMemoryUsage()
	if with.unused < before.unused+32<<20 {
		t.Errorf("%d bytes are unused after 64 MiB became garbage, %d before", with.unused, before.unused)
	}
	newMemoryReturner().release()
	if after := readMemoryUsage(); after.unused >= with.unused/2 {
		t.Errorf("%d bytes are unused after they were returned, %d before", after.unused, with.unused)
	}
}

// allocate leaves garbage of some MiB.
func allocate(mebibytes int) {
	garbage := make([][]byte, mebibytes)
	for i := range garbage {
		garbage[i] = make([]byte, 1<<20)
	}
	runtime.KeepAlive(garbage)
}
