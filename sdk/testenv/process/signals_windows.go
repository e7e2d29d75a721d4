package process

import "syscall"

// Windows has no such signals: sending them is an error.
const (
	suspend = syscall.Signal(0x13)
	resume  = syscall.Signal(0x12)
)
