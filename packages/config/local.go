package config

import (
	"os"
	"path/filepath"
)

// Local returns the path of the configuration of a local repository. Its path is relative to the folder of the program, or absolute;
// empty means that there is none. It is ignored if its owner is another user than the program's: a program that was copied into a folder
// of all users, such as /tmp, must not read what others put there.
func Local(program, relative string) string {
	if relative == "" {
		return ""
	}
	file := relative
	if resolved, err := filepath.EvalSymlinks(program); err == nil {
		program = resolved
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(filepath.Dir(program), relative)
	}
	there, err := os.Stat(file)
	if err != nil {
		return file // That it is missing is for the reader to say.
	}
	if own, err := os.Stat(program); err != nil || !sameOwner(own, there) {
		return ""
	}
	return file
}
