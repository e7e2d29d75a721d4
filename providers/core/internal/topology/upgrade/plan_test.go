package upgrade

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each case of the transcripts in testdata starts with a "case" line, which is the reason for the case. The lines until "plan"
// are the input, and the lines after it, up to an empty line, the result of Compute:
//
//	want v1.2.0 concurrency=2
//	cp v1.1.0 [provisioning] [upgrading] [scaling]      (no line: it does not exist)
//	md <topology name> <version>|none [upgrading] [defer] [hold] [pin=v1.1.0]
//	mp <topology name> <version>|none [upgrading] [defer] [hold] [pin=v1.1.0]
//	hook cp|workers                                     (extensions hold the control plane, or the workers)
//
// The result ends with "complete" if there are pinned workers and the upgrade has ended, and with the reason and message of what has to wait.
func TestTranscripts(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for block := range strings.SplitSeq(strings.TrimSpace(string(content)), "\n\n") {
			lines := strings.Split(block, "\n")
			reason := strings.TrimPrefix(lines[0], "case ")
			t.Run(reason, func(t *testing.T) {
				at := slices.Index(lines, "plan")
				if at < 0 {
					t.Fatalf("%s: case %q has no plan", path, reason)
				}
				in := parse(t, lines[1:at])
				if diff := cmp.Diff(strings.Join(lines[at+1:], "\n"), describe(in, Compute(in))); diff != "" {
					t.Errorf("%s: -want +got:\n%s", reason, diff)
				}
			})
		}
	}
}

func parse(t *testing.T, lines []string) Input {
	t.Helper()
	in := Input{Concurrency: 1}
	for _, line := range lines {
		words := strings.Fields(line)
		has := func(flag string) bool { return slices.Contains(words, flag) }
		switch words[0] {
		case "want":
			in.Version = words[1]
			if len(words) > 2 {
				if _, err := fmt.Sscanf(words[2], "concurrency=%d", &in.Concurrency); err != nil {
					t.Fatal(err)
				}
			}
		case "cp":
			in.ControlPlane = ControlPlane{Exists: true, Version: words[1], Provisioning: has("provisioning"), Upgrading: has("upgrading"), Scaling: has("scaling")}
		case "md", "mp":
			w := Workers{TopologyName: words[1], Upgrading: has("upgrading"), Unreachable: has("unreachable"), Deferred: has("defer"), Hold: has("hold")}
			for _, word := range words {
				if version, ok := strings.CutPrefix(word, "pin="); ok {
					w.Pinned = version
				}
			}
			if words[2] != "none" {
				w.Exists, w.Version, w.Object = true, words[2], "c-"+words[1]
			}
			if words[0] == "md" {
				in.MachineDeployments = append(in.MachineDeployments, w)
			} else {
				in.MachinePools = append(in.MachinePools, w)
			}
		case "hook":
			in.ControlPlaneHeld, in.WorkersHeld = has("cp"), has("workers")
		default:
			t.Fatalf("line %q", line)
		}
	}
	return in
}

func describe(in Input, p Plan) string {
	out := []string{"cp " + p.ControlPlane}
	list := func(kind string, all []Workers, s Sequence) {
		for _, w := range all {
			version, planned := s.Versions[w.TopologyName]
			if !planned {
				version = "later"
			}
			out = append(out, strings.Join([]string{kind, w.TopologyName, version}, " "))
		}
	}
	list("md", in.MachineDeployments, p.MachineDeployments)
	list("mp", in.MachinePools, p.MachinePools)
	isPinned := func(w Workers) bool { return w.Pinned != "" }
	if p.Complete() && slices.ContainsFunc(slices.Concat(in.MachineDeployments, in.MachinePools), isPinned) {
		out = append(out, "complete")
	}
	if reason, message, ok := p.Waiting(); ok {
		out = append(out, reason+": "+message)
	}
	return strings.Join(out, "\n")
}
