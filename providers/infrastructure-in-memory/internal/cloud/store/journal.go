package store

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
)

// A journal makes a group durable: every change is appended to a file, in one write, before the request returns.
// Completed requests therefore survive a kill of the process; a power failure may lose the latest ones, because the file
// is not synced. Files are not kept open between writes, so the number of groups is not limited by file descriptors. A
// journal that is mostly history is rewritten with the current objects, and replaced atomically.
//
// The first line is a header, every other line a record. An incomplete or invalid last line belongs to a request that
// never returned, or only just before a power failure, and is dropped.
type journal struct {
	path   string
	header header
	size   int64 // of the file
	live   int   // records that a rewritten file would have, at the last rewrite
	lines  int   // records in the file
	table  *table
}

// A journal is rewritten when it has this many times the required records, and at least compactLines.
const (
	compactFactor = 4
	compactLines  = 1000
)

// openJournal loads the objects of a journal into a table, if there is one of this owner, and continues it; otherwise it creates a
// new one.
func openJournal(path string, owner types.UID, objects *table) (*journal, error) {
	j := &journal{path: path, table: objects, header: header{Version: journalVersion, UID: owner}}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("create the directory for journals: %w", err)
	}
	if err := j.load(); err != nil {
		return nil, fmt.Errorf("load journal %s: remove the file to start with an empty cluster: %w", j.path, err)
	}
	if j.size == 0 {
		if err := j.rewrite(); err != nil {
			return nil, err
		}
	} else if err := os.Truncate(j.path, j.size); err != nil {
		return nil, fmt.Errorf("truncate journal %s: %w", j.path, err)
	}
	return j, nil
}

// load replays the journal, and sets size to the end of the last complete record. It leaves size at 0 if there is no
// journal of the group's owner.
func (j *journal) load() error {
	file, err := os.Open(j.path)
	if err != nil {
		return ignoreMissing(err)
	}
	defer file.Close() //nolint:errcheck // It was only read.

	lines := bufio.NewReader(file)
	first, err := lines.ReadBytes('\n')
	if errors.Is(err, io.EOF) {
		return nil
	}
	var found header
	if err := errors.Join(err, json.Unmarshal(first, &found)); err != nil {
		return fmt.Errorf("read the header: %w", err)
	}
	if found.Version != journalVersion {
		return fmt.Errorf("unsupported format version %d, supported is %d", found.Version, journalVersion)
	}
	if found.UID != j.header.UID {
		return nil
	}
	j.table.revision = max(j.table.revision, found.Revision)
	j.size = int64(len(first))
	for number := 2; ; number++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err := errors.Join(err, j.replay(line)); err != nil {
			if _, end := lines.Peek(1); errors.Is(end, io.EOF) {
				break // The last record was not completely written before a crash.
			}
			return fmt.Errorf("line %d: %w", number, err)
		}
		j.size += int64(len(line))
		j.lines++
	}
	for _, stored := range j.table.objects {
		j.live += len(stored)
	}
	return nil
}

func (j *journal) replay(line []byte) error {
	var r record
	if err := json.Unmarshal(line, &r); err != nil {
		return err
	}
	var content map[string]any
	if err := utiljson.Unmarshal(r.Object, &content); err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: content}
	key := Key{Resource: Resource{Group: r.Group, Resource: r.Resource}, Namespace: u.GetNamespace(), Name: u.GetName()}
	var revision uint64
	if _, err := fmt.Sscan(u.GetResourceVersion(), &revision); err != nil {
		return fmt.Errorf("%s: resource version: %w", key, err)
	}
	before := j.table.revision
	j.table.index(Event{
		Type:     r.Type,
		Object:   newObject(key, u, revision, bytes.Clone(r.Object)),
		Previous: j.table.lookup(key),
	})
	j.table.revision = max(before, revision)
	return nil
}

// append records a change before the group applies it.
func (j *journal) append(e Event) error {
	if j.lines >= compactLines && j.lines >= compactFactor*j.live {
		if err := j.rewrite(); err != nil {
			return err
		}
	}
	line, err := encodeRecord(e.Type, e.Object)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(j.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("open journal: %w", err)
	}
	_, err = file.Write(line)
	if err != nil {
		// A partially written line must not run into the next one.
		err = errors.Join(err, file.Truncate(j.size))
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	j.size += int64(len(line))
	j.lines++
	return nil
}

// rewrite replaces the file with one that only has the current objects.
func (j *journal) rewrite() error {
	j.header.Revision = j.table.revision
	text, err := json.Marshal(j.header)
	if err != nil {
		return err
	}
	text = append(text, '\n')
	var current []*Object
	for _, stored := range j.table.objects {
		for _, o := range stored {
			current = append(current, o)
		}
	}
	slices.SortFunc(current, func(a, b *Object) int { return compareKeys(a.Key, b.Key) })
	for _, o := range current {
		line, err := encodeRecord(watch.Added, o)
		if err != nil {
			return err
		}
		text = append(text, line...)
	}
	fresh := j.path + ".new"
	if err := writeSynced(fresh, text); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	if err := os.Rename(fresh, j.path); err != nil {
		return fmt.Errorf("replace journal: %w", err)
	}
	j.size, j.live, j.lines = int64(len(text)), len(current), len(current)
	return nil
}

func (j *journal) remove() error {
	if err := ignoreMissing(os.Remove(j.path)); err != nil {
		return fmt.Errorf("remove journal: %w", err)
	}
	return nil
}
