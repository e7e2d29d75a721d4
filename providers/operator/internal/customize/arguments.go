package customize

import (
	"slices"
	"strings"
)

// arguments are the arguments of a container, such as --leader-elect, --v=2 or, as two of them, --v 2.
type arguments struct{ list []string }

// key returns the name of a flag without dashes.
func key(name string) string { return strings.TrimLeft(name, "-") }

// find returns the position of a flag, and how many arguments it takes; -1 if it is not set.
func (a *arguments) find(name string) (at, length int) {
	for i, argument := range a.list {
		if !strings.HasPrefix(argument, "-") {
			continue
		}
		flag, _, joined := strings.Cut(key(argument), "=")
		if flag != key(name) {
			continue
		}
		if !joined && i+1 < len(a.list) && !strings.HasPrefix(a.list[i+1], "-") {
			return i, 2
		}
		return i, 1
	}
	return -1, 0
}

func (a *arguments) has(name string) bool {
	at, _ := a.find(name)
	return at >= 0
}

// get returns the value of a flag, "" if it is not set.
func (a *arguments) get(name string) string {
	at, length := a.find(name)
	switch {
	case at < 0:
		return ""
	case length == 2:
		return a.list[at+1]
	}
	_, value, _ := strings.Cut(a.list[at], "=")
	return value
}

// set replaces a flag where it is, or appends it.
func (a *arguments) set(name, value string) {
	argument := "--" + key(name) + "=" + value
	at, length := a.find(name)
	if at < 0 {
		a.list = append(a.list, argument)
		return
	}
	a.list = slices.Replace(a.list, at, at+length, argument)
}
