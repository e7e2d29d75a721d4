package house

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// run runs commands after functions of a script in hack, in a new directory.
func run(t *testing.T, script string, functions []string, commands string) (dir, out string, err error) {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", script))
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var text []string
	for _, name := range functions {
		_, body, ok := strings.Cut(string(source), "\n"+name+"() {\n")
		if !ok {
			t.Fatalf("%s has no function %s", script, name)
		}
		body, _, _ = strings.Cut(body, "\n}\n")
		text = append(text, name+"() {\n"+body+"\n}")
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", strings.Join(append(text, commands), "\n"))
	cmd.Dir = t.TempDir()
	answer, err := cmd.Output()
	return cmd.Dir, strings.TrimSpace(string(answer)), err
}

// FUZZ_TIME is any duration that Go accepts.
func TestFuzzTime(t *testing.T) {
	for text, want := range map[string]string{
		"90s": "90", "10m": "600", "1h": "3600", "1h30m": "5400", "0.02h": "72", "0.5h": "1800", ".5h": "1800", "1.5h10.5m": "6030",
		"1h0m0.4s": "3600", "2500ms": "3", "1ms": "1", "5000000us": "5", "5000000µs": "5", "3000000000ns": "3", "08m": "480",
		"": "", "1": "", "h": "", "1x": "", "-1h": "", "1h 2m": "", "0s": "", "1.2.3h": "", "1e3s": "", "1H": "",
	} {
		_, got, err := run(t, "fuzz.sh", []string{"seconds"}, "seconds '"+text+"' 2>/dev/null")
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q seconds, want %q; %v", text, got, want, err)
		}
	}
}

// A run of some stages replaces their results, and keeps those of others.
func TestStagesOfSoak(t *testing.T) {
	const script = `
out=. failed=0 SECONDS=0
printf '%-12s %8s %s\n' stage seconds result >stages
stage race true
stage faults false
stage scale true
STAGES="faults fuzz"
stage race false
stage faults true
stage fuzz true
`
	dir, _, err := run(t, "soak.sh", []string{"stage", "record"}, script)
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile(filepath.Join(dir, "stages"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) == 3 {
			got = append(got, fields[0]+" "+fields[2])
		}
	}
	want := []string{"stage result", "race passed", "scale passed", "faults passed", "fuzz passed"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
