package world

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadExit(t *testing.T) {
	const earlier = "panic: of an earlier process\nm: leader election lost\n"
	tests := []struct {
		reason string
		output string
		want   exit
	}{
		{
			reason: "an error is the last line, and the lines before it may explain it",
			output: "I1 first\nI1 second\n\nE1 third\nm: cannot listen: address already in use\n",
			want:   exit{reason: "I1 second | E1 third | m: cannot listen: address already in use"},
		},
		{
			reason: "a panic is followed by the stack, whose first frames have the cause",
			output: "I1 first\npanic: assignment to entry in nil map\n\ngoroutine 7 [running]:\nmain.f(...)\n\t/m.go:3 +0x1\n" +
				"b\nc\nd\ne\nf\n",
			want: exit{reason: "panic: assignment to entry in nil map | goroutine 7 [running]: | main.f(...) | /m.go:3 +0x1 | b | c | d | e", panicked: true},
		},
		{
			reason: "a fatal error of the runtime ends like a panic",
			output: "fatal error: concurrent map writes\n",
			want:   exit{reason: "fatal error: concurrent map writes", panicked: true},
		},
		{
			reason: "a leader that has lost its lease must exit",
			output: "E1 failed to renew\nm: leader election lost\n",
			want:   exit{reason: "E1 failed to renew | m: leader election lost", lostLease: true},
		},
		{
			reason: "a leader that may have lost its lease must exit",
			output: "m: not sent: this process was the leader and has not renewed its lease in time, so another may lead\n",
			want: exit{reason: "m: not sent: this process was the leader and has not renewed its lease in time, so another may lead",
				lostLease: true},
		},
		{
			reason: "the last line may be incomplete",
			output: "m: killed while wri",
			want:   exit{reason: "m: killed while wri"},
		},
		{
			reason: "long lines are truncated",
			output: strings.Repeat("a", lineLength+1) + "\n",
			want:   exit{reason: strings.Repeat("a", lineLength)},
		},
		{reason: "a process that was killed may have logged nothing", want: exit{reason: "it has logged nothing"}},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "log")
			if err := os.WriteFile(log, []byte(earlier+test.output), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := readExit(log, int64(len(earlier)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(exit{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
