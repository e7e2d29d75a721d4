package lock

import (
	"os/exec"
	"testing"
)

func TestEnded(t *testing.T) {
	child := exec.CommandContext(t.Context(), "true")
	if err := child.Run(); err != nil {
		t.Fatal(err)
	}
	self := Self()
	if self.Processes == "" {
		t.Skip("this system does not identify processes")
	}
	ended := Holder{Host: self.Host, Processes: self.Processes, PID: child.Process.Pid}
	elsewhere, otherBoot := ended, ended
	elsewhere.Host, otherBoot.Processes = "elsewhere", "other"
	tests := []struct {
		reason string
		holder Holder
		want   bool
	}{
		{"a process that has exited", ended, true},
		{"this process", self, false},
		{"a process of another machine may run", elsewhere, false},
		{"so may one of another container", otherBoot, false},
		{"an unknown holder may run", parse("operator"), false},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			if got := Ended(parse(tc.holder.String())); got != tc.want {
				t.Errorf("Ended(%s) = %t", tc.holder, got)
			}
		})
	}
}
