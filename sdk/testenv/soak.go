package testenv

import (
	"os"
	"testing"
)

// SoakVariable is the environment variable that, if not empty, runs the tests that take too long for each change.
const SoakVariable = "CAPI_SOAK"

// Soaks reports whether SoakVariable is set, for a test of which each change runs a part.
func Soaks() bool { return os.Getenv(SoakVariable) != "" }

// Soak skips a test unless SoakVariable is set, as in `make soak`: a test that takes minutes, and of which each change
// runs a shorter version.
func Soak(t testing.TB) {
	t.Helper()
	if !Soaks() {
		t.Skipf("`make soak` runs this test; to run it alone, set %s=1", SoakVariable)
	}
}
