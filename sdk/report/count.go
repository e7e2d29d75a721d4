package report

import "strconv"

// Count returns a number of things, such as "1 Machine" and "3 Machines". one is a word whose plural ends with an s.
func Count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + one + "s"
}
