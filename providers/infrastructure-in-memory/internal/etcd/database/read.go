package database

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"sigs.k8s.io/cluster-api/backup/etcdsnapshot/pages"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
	"sigs.k8s.io/cluster-api/sdk/failsafe"
)

// maxContent limits the size of all current values of a database in bytes.
const maxContent = 128 << 20

// Read reads the current objects and the members of a database, whose file it closes. The file may be anything.
func Read(file *os.File) (_ *cloud.Content, _ []Member, err error) {
	defer failsafe.Recover("reading a database of etcd", &err)
	// bbolt maps the file, and trusts it: pages that it does not have would end the process.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	if err := checkFile(file); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open the database of etcd: %w", err), file.Close())
	}
	db, err := bolt.Open(file.Name(), 0o600, &bolt.Options{
		ReadOnly: true, OpenFile: func(string, int, fs.FileMode) (*os.File, error) { return file, nil },
	})
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open the database of etcd: %w", err), ignoreClosed(file.Close()))
	}
	defer db.Close() //nolint:errcheck // It was only read.
	var content *cloud.Content
	var members []Member
	err = db.View(func(tx *bolt.Tx) error {
		var err error
		if content, err = readKeys(tx); err != nil {
			return err
		}
		members, err = readMembers(tx)
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read the database of etcd: %w", err)
	}
	return content, members, nil
}

func checkFile(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	return pages.Check(context.Background(), file, info.Size()) // What was downloaded is limited.
}

func ignoreClosed(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// readKeys reads the latest version of each object, and the revision, as a starting etcd does.
func readKeys(tx *bolt.Tx) (*cloud.Content, error) {
	bucket := tx.Bucket(keyBucket)
	if bucket == nil {
		return nil, errors.New("it has no keys")
	}
	content, live, size := &cloud.Content{}, map[string]mvccpb.KeyValue{}, 0
	err := bucket.ForEach(func(k, v []byte) error {
		if len(k) != revisionLength && len(k) != tombstoneLength {
			return fmt.Errorf("a revision has %d bytes", len(k))
		}
		if content.Revision = binary.BigEndian.Uint64(k); content.Revision > math.MaxInt64 {
			return errors.New("a revision is negative")
		}
		var kv mvccpb.KeyValue
		if err := kv.Unmarshal(v); err != nil {
			return errors.New("an entry is invalid")
		}
		key := string(kv.Key)
		size -= len(live[key].Value)
		if len(k) == tombstoneLength {
			delete(live, key)
			return nil
		}
		if size += len(kv.Value); size > maxContent {
			return fmt.Errorf("its values have more than %d bytes", maxContent)
		}
		live[key] = kv
		return nil
	})
	if err != nil {
		return nil, err
	}
	if meta := tx.Bucket(metaBucket); meta != nil {
		for _, name := range []string{scheduledKey, finishedKey} {
			if at := meta.Get([]byte(name)); len(at) >= revisionLength {
				content.Revision = max(content.Revision, binary.BigEndian.Uint64(at))
			}
		}
	}
	for key, kv := range live {
		o, ok, err := imported(key, kv)
		if err != nil {
			return nil, err
		}
		if ok {
			content.Objects = append(content.Objects, o)
		}
	}
	slices.SortFunc(content.Objects, func(a, b store.Imported) int { return cmp.Compare(a.Revision, b.Revision) })
	return content, nil
}

// imported returns the object of a key, or false if it is no object of an API server.
func imported(key string, kv mvccpb.KeyValue) (store.Imported, bool, error) {
	path, ok := strings.CutPrefix(key, registry)
	if !ok {
		return store.Imported{}, false, nil
	}
	var object struct {
		APIVersion string `json:"apiVersion"`
		Metadata   struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"metadata"`
	}
	if !bytes.HasPrefix(kv.Value, []byte("{")) || json.Unmarshal(kv.Value, &object) != nil {
		return store.Imported{}, false, fmt.Errorf(
			"the value of %.200q is not JSON: simulated API servers need --storage-media-type=application/json", key)
	}
	group, _, found := strings.Cut(object.APIVersion, "/")
	if !found {
		group = ""
	}
	resource := store.Resource{Group: group, Resource: resourceOf(group, path)}
	at := store.Key{Resource: resource, Namespace: object.Metadata.Namespace, Name: object.Metadata.Name}
	if at.Name == "" || group == store.Simulation || keyOf(at) != key {
		return store.Imported{}, false, nil // API servers have other keys, too.
	}
	return store.Imported{Key: at, Revision: uint64(max(kv.ModRevision, 1)), JSON: kv.Value}, true, nil
}

// resourceOf returns the resource whose objects are at a path below the registry.
func resourceOf(group, path string) string {
	for r, prefix := range prefixes() {
		if r.Group == group && strings.HasPrefix(path, prefix+"/") {
			return r.Resource
		}
	}
	if !isBuiltin(group) {
		path = strings.TrimPrefix(path, group+"/")
	}
	resource, _, _ := strings.Cut(path, "/")
	return resource
}

// maxMembers limits the members of a database.
const maxMembers = 100

func readMembers(tx *bolt.Tx) ([]Member, error) {
	bucket := tx.Bucket(memberBucket)
	if bucket == nil {
		return nil, errors.New("it has no members")
	}
	var all []Member
	err := bucket.ForEach(func(_, v []byte) error {
		var m Member
		if err := json.Unmarshal(v, &m); err != nil {
			return errors.New("a member is invalid")
		}
		if len(all) >= maxMembers {
			return fmt.Errorf("it has more than %d members", maxMembers)
		}
		all = append(all, m)
		return nil
	})
	return all, err
}
