//go:build unix

package config

import (
	"io/fs"
	"syscall"
)

// sameOwner reports whether two files belong to the same user.
func sameOwner(a, b fs.FileInfo) bool {
	first, ok := a.Sys().(*syscall.Stat_t)
	second, both := b.Sys().(*syscall.Stat_t)
	return ok && both && first.Uid == second.Uid
}
