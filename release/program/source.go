package program

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Source is the state of a checkout.
type Source struct {
	// Commit is the hash of the last commit. Empty outside of a repository.
	Commit string
	// Modified reports whether files differ from the commit.
	Modified bool
	// Time is SOURCE_DATE_EPOCH, or the time of the commit.
	Time time.Time
}

// ReadSource reads the state of the checkout in a folder. getenv returns environment variables. Clients of a repository,
// SOURCE_DATE_EPOCH is required.
func ReadSource(ctx context.Context, root string, getenv func(string) string) (Source, error) {
	seconds := getenv("SOURCE_DATE_EPOCH")
	log, err := git(ctx, root, "log", "-1", "--format=%H %ct")
	switch {
	case err != nil && seconds == "":
		return Source{}, fmt.Errorf("cannot read the commit; set SOURCE_DATE_EPOCH outside of a repository: %w", err)
	case err != nil:
		t, err := parseEpoch(seconds)
		return Source{Time: t}, err
	}
	commit, committed, _ := strings.Cut(log, " ")
	if seconds == "" {
		seconds = committed
	}
	t, err := parseEpoch(seconds)
	if err != nil {
		return Source{}, err
	}
	status, err := git(ctx, root, "status", "--porcelain")
	return Source{Commit: commit, Modified: status != "", Time: t}, err
}

// Revision is the commit, with the suffix "-modified" if files differ from it.
func (s Source) Revision() string {
	if s.Commit != "" && s.Modified {
		return s.Commit + "-modified"
	}
	return s.Commit
}

func parseEpoch(seconds string) (time.Time, error) {
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH %q is not a number of seconds: %w", seconds, err)
	}
	return time.Unix(n, 0).UTC(), nil
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(stdout.String()), nil
}
