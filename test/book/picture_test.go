package book

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUnseen(t *testing.T) {
	picture := "$ make it\nMachine/demo-abc12  True  1s\n...\nstop: kill 17\nnot there\n"
	output := "x\nMachine/demo-9zz9z     True  22s\nstop: kill 1234\n\n"
	if diff := cmp.Diff([]string{"not there"}, unseen(picture, output)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
