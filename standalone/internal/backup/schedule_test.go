package backup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	gocmp "github.com/google/go-cmp/cmp"
	testingclock "k8s.io/utils/clock/testing"
)

// outcome is what Schedule.Done has got.
type outcome struct{ name, err string }

func TestSchedule(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, name := range []string{"capi-20260101T000000Z.backup", "capi-20260102T000000Z.backup", ".capi-20260102T010000Z.backup-1.partial", "mine.backup",
		"capi-yesterday.backup"} {
		must(t, os.WriteFile(filepath.Join(folder, name), []byte(name), 0o600))
	}
	clock := testingclock.NewFakeClock(time.Date(2026, 1, 2, 6, 0, 0, 0, time.UTC))
	done := make(chan outcome)
	s := Schedule{Source: source(t, nil), Folder: folder, Recipients: []age.Recipient{key(t).Recipient()}, Interval: 24 * time.Hour, Keep: 2,
		Clock: clock, Done: func(path string, err error) {
			o := outcome{name: filepath.Base(path)}
			if err != nil {
				o.err = err.Error()
			}
			done <- o
		}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { s.Run(ctx); close(ended) }()
	step := func(d time.Duration) outcome {
		for !clock.HasWaiters() { // It is about to wait.
			select {
			case got := <-done:
				t.Fatalf("too early: %v", got)
			default:
			}
		}
		clock.Step(d - time.Second)
		select {
		case got := <-done:
			t.Errorf("too early: %v", got)
		default:
		}
		clock.Step(time.Second)
		return <-done
	}
	want := func(got outcome, name string, files ...string) {
		t.Helper()
		if diff := gocmp.Diff(outcome{name: name}, got, gocmp.AllowUnexported(outcome{})); diff != "" {
			t.Errorf("outcome (-want +got):\n%s", diff)
		}
		if diff := gocmp.Diff(append(files, "capi-yesterday.backup", "mine.backup"), names(t, folder)); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
	}
	want(step(18*time.Hour), "capi-20260103T000000Z.backup", "capi-20260102T000000Z.backup", "capi-20260103T000000Z.backup")
	want(step(24*time.Hour), "capi-20260104T000000Z.backup", "capi-20260103T000000Z.backup", "capi-20260104T000000Z.backup")

	must(t, os.Rename(folder, folder+"-away"))
	if got := step(24 * time.Hour); !strings.Contains(got.err, "no such file") {
		t.Errorf("without the folder: %v", got)
	}
	must(t, os.Rename(folder+"-away", folder))
	want(step(retryAfter), "capi-20260105T001000Z.backup", "capi-20260104T000000Z.backup", "capi-20260105T001000Z.backup")
	cancel()
	<-ended
}

func names(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	must(t, errors.Join(err))
	var all []string
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	return all
}
