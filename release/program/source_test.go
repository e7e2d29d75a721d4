package program_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/release/program"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	epoch := func(value string) func(string) string {
		return func(name string) string {
			if name == "SOURCE_DATE_EPOCH" {
				return value
			}
			return ""
		}
	}
	read := func(value string) program.Source {
		t.Helper()
		s, err := program.ReadSource(t.Context(), dir, epoch(value))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if _, err := program.ReadSource(t.Context(), dir, epoch("")); err == nil || !strings.Contains(err.Error(), "SOURCE_DATE_EPOCH") {
		t.Errorf("outside of a repository: got %v", err)
	}
	if diff := cmp.Diff(program.Source{Time: time.Unix(7, 0).UTC()}, read("7")); diff != "" {
		t.Errorf("outside of a repository, with a time: %s", diff)
	}

	for _, args := range [][]string{{"init", "--quiet"}, {"commit", "--quiet", "--allow-empty", "--message", "first"}} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org",
			"GIT_COMMITTER_DATE=1000000000 +0000", "GIT_CONFIG_GLOBAL=/dev/null")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	clean := read("")
	if clean.Modified || len(clean.Commit) != 40 || clean.Time.Unix() != 1000000000 || clean.Revision() != clean.Commit {
		t.Errorf("a clean checkout: got %+v", clean)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s := read("7"); !s.Modified || s.Time.Unix() != 7 || s.Revision() != clean.Commit+"-modified" {
		t.Errorf("a modified checkout: got %+v", s)
	}
	if _, err := program.ReadSource(t.Context(), dir, epoch("today")); err == nil || !strings.Contains(err.Error(), "not a number of seconds") {
		t.Errorf("an invalid time: got %v", err)
	}
}
