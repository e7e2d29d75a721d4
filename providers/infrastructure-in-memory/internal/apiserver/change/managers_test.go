package change

import (
	"runtime"
	"testing"
)

// BenchmarkSchemas measures the first write of a process that tracks field managers. It is meaningful once per process: run it
// alone, with -benchtime 1x.
func BenchmarkSchemas(b *testing.B) {
	for b.Loop() {
		before := heap()
		NewManagers().converter()
		after := heap()
		b.ReportMetric((float64(after)-float64(before))/(1<<20), "MiB")
	}
}

// heap returns the bytes of live objects and stacks.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc + stats.StackInuse
}
