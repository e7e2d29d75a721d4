package enginetest

import "testing"

func TestFake(t *testing.T) {
	Suite(t, World{Engine: New(), Image: "image", Prefix: "test-"})
}
