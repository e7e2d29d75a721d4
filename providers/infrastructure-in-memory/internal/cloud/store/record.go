package store

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// header identifies the owner of a journal's group.
type header struct {
	Version  int       `json:"version"`
	UID      types.UID `json:"uid"`
	Revision uint64    `json:"revision"`
}

// record is one change. Object is the object after it.
type record struct {
	Type     watch.EventType `json:"type"`
	Group    string          `json:"group,omitempty"`
	Resource string          `json:"resource"`
	Object   json.RawMessage `json:"object"`
}

const (
	journalVersion = 1
	// JournalSuffix is the suffix of journals.
	JournalSuffix = ".journal"
)

// JournalPath is the journal of a workload cluster.
func JournalPath(directory string, key types.NamespacedName) string {
	return filepath.Join(directory, key.Namespace+"_"+key.Name+JournalSuffix)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// writeSynced writes and syncs a file that will replace another one.
func writeSynced(path string, content []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

func encodeRecord(t watch.EventType, o *Object) ([]byte, error) {
	line, err := json.Marshal(record{Type: t, Group: o.Key.Resource.Group, Resource: o.Key.Resource.Resource, Object: o.raw})
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", o.Key, err)
	}
	return append(line, '\n'), nil
}

// JournalOwner reads the owner of a journal; false if the header is invalid or of another format.
func JournalOwner(path string) (types.UID, bool) {
	file, err := os.Open(path)
	if err != nil {
		return "", false
	}
	first, err := bufio.NewReader(file).ReadBytes('\n')
	var found header
	err = errors.Join(err, json.Unmarshal(first, &found), file.Close())
	return found.UID, err == nil && found.Version == journalVersion && found.UID != ""
}
