package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"filippo.io/age"
	"k8s.io/utils/clock"
)

const (
	// filePrefix and fileSuffix enclose the time in the names of scheduled backups.
	filePrefix, fileSuffix = "capi-", ".backup"
	// fileTime is the format of that time, in UTC, so that names sort by age.
	fileTime = "20060102T150405Z"
	// retryAfter is the longest delay before a backup that failed is tried again.
	retryAfter = 10 * time.Minute
)

// Schedule saves a data directory again and again.
type Schedule struct {
	Source
	// Folder is where the files are. It must exist: the file system may have to be mounted.
	Folder string
	// Recipients can decrypt the files.
	Recipients []age.Recipient
	// Interval is the time from one backup to the next, also if the program ends in between.
	Interval time.Duration
	// Keep is how many files are kept, at least one. Only files with names of the schedule are removed, after another one is complete.
	Keep int
	// Clock is the time.
	Clock clock.WithTicker
	// Done receives what came of each attempt: the path, or an error.
	Done func(path string, err error)
}

// Run saves until the context ends.
func (s Schedule) Run(ctx context.Context) {
	for wait := s.due(); ; {
		timer := s.Clock.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
		path, err := s.save(ctx)
		if ctx.Err() != nil {
			return
		}
		s.Done(path, err)
		wait = s.Interval
		if err != nil {
			wait = min(wait, retryAfter)
		}
	}
}

// due returns how long the next backup has time.
func (s Schedule) due() time.Duration {
	files, err := s.files()
	if err != nil || len(files) == 0 {
		return 0
	}
	last, _ := timeOf(files[len(files)-1])
	return min(max(0, last.Add(s.Interval).Sub(s.Clock.Now())), s.Interval)
}

// save saves once, and then removes what is no longer kept.
func (s Schedule) save(ctx context.Context) (string, error) {
	if err := s.removePartial(); err != nil {
		return "", err
	}
	path := filepath.Join(s.Folder, filePrefix+s.Clock.Now().UTC().Format(fileTime)+fileSuffix)
	if _, _, err := s.SaveFile(ctx, path, s.Recipients); err != nil {
		return "", err
	}
	files, err := s.files()
	if err != nil {
		return path, err
	}
	var errs []error
	for _, file := range files[:max(0, len(files)-s.Keep)] {
		if err := os.Remove(filepath.Join(s.Folder, file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove an old backup: %w", err))
		}
	}
	return path, errors.Join(errs...)
}

// files returns the names of backups of the schedule, the oldest first.
func (s Schedule) files() ([]string, error) {
	entries, err := os.ReadDir(s.Folder)
	if err != nil {
		return nil, fmt.Errorf("list backups: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if _, ours := timeOf(entry.Name()); ours && entry.Type().IsRegular() {
			names = append(names, entry.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// removePartial removes what a killed process has left.
func (s Schedule) removePartial() error {
	left, err := filepath.Glob(filepath.Join(s.Folder, "."+filePrefix+"*"+fileSuffix+"-*"+partialSuffix))
	for _, path := range left {
		if removed := os.Remove(path); !errors.Is(removed, fs.ErrNotExist) {
			err = errors.Join(err, removed)
		}
	}
	if err != nil {
		return fmt.Errorf("remove a backup that is not complete: %w", err)
	}
	return nil
}

// timeOf returns the time in the name of a backup of the schedule.
func timeOf(name string) (time.Time, bool) {
	text, prefixed := strings.CutPrefix(name, filePrefix)
	text, suffixed := strings.CutSuffix(text, fileSuffix)
	at, err := time.Parse(fileTime, text)
	return at, prefixed && suffixed && err == nil
}
