package backup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"filippo.io/age"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"sigs.k8s.io/cluster-api/backup/archive"
	"sigs.k8s.io/cluster-api/backup/etcdsnapshot"
	"sigs.k8s.io/cluster-api/standalone/internal/encryption"
)

// Source is what Save saves.
type Source struct {
	// Root is the data directory.
	Root string
	// Keys is the file with the keys for Secrets; usually in Root.
	Keys string
	// Storage is the directory's etcd.
	Storage *clientv3.Client
	// Capi is the version of this program, and Kubernetes that of the API server that has written the data.
	Capi, Kubernetes string
	// Now returns the time.
	Now func() time.Time
	// Progress receives how many bytes of the database were saved, of how many. Nil: it is not reported.
	Progress func(done, total int64)
}

// Save writes a backup to w that these recipients can decrypt. If it fails, what w has got must be dropped.
func (s Source) Save(ctx context.Context, w io.Writer, recipients []age.Recipient) (m Manifest, err error) {
	keys, err := s.readKeys(ctx)
	if err != nil {
		return m, err
	}
	now, err := s.Storage.Get(ctx, "/", clientv3.WithCountOnly())
	if err != nil {
		return m, fmt.Errorf("read etcd's revision: %w", err)
	}
	m = Manifest{
		Kind: kind, Format: format, Created: s.Now().UTC().Truncate(time.Second), Capi: s.Capi, Kubernetes: s.Kubernetes,
		Revision: now.Header.Revision,
	}
	out, err := archive.NewWriter(w, recipients...)
	if err != nil {
		return m, err
	}
	described, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return m, fmt.Errorf("encode %s: %w", manifestEntry, err)
	}
	small := []entry{{manifestEntry, append(described, '\n')}, {keysEntry, keys}}
	settings, err := s.settings()
	if err != nil {
		return m, err
	}
	for _, e := range append(small, settings...) {
		if err := out.Add(e.name, int64(len(e.content)), bytes.NewReader(e.content)); err != nil {
			return m, err
		}
	}
	if err := s.saveStorage(ctx, out); err != nil {
		return m, err
	}
	if err := s.saveComponents(out); err != nil {
		return m, err
	}
	if err := s.sameKeys(keys); err != nil {
		return m, err
	}
	return m, out.Close()
}

type entry struct {
	name    string
	content []byte
}

// readKeys reads the keys for Secrets, which may not exist if there are none, and checks that they can decrypt all.
func (s Source) readKeys(ctx context.Context) ([]byte, error) {
	raw, err := os.ReadFile(s.Keys)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the encryption keys: %w", err)
	}
	stored, err := encryption.Inspect(ctx, s.Storage)
	if err != nil {
		return nil, err
	}
	names, err := encryption.Names(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Keys, err)
	}
	missing := slices.DeleteFunc(stored.Keys, func(name string) bool { return slices.Contains(names, name) })
	if len(missing) > 0 {
		return nil, fmt.Errorf("Secrets in etcd are encrypted with keys (%s) that are missing in %s: set --encryption-keys as for capi serve",
			strings.Join(missing, ", "), s.Keys)
	}
	return raw, nil
}

// sameKeys fails if there is a key that was not there when the backup began: the snapshot may need it.
func (s Source) sameKeys(before []byte) error {
	after, err := os.ReadFile(s.Keys)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the encryption keys again: %w", err)
	}
	had, err := encryption.Names(before)
	if err != nil {
		return err
	}
	has, err := encryption.Names(after)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(has, func(name string) bool { return !slices.Contains(had, name) }) {
		return errors.New("capi has started to use another encryption key since the backup began: run it again")
	}
	return nil
}

// settings are the small files of the data directory that a restore needs.
func (s Source) settings() ([]entry, error) {
	names := []string{portEntry}
	certificates, err := os.ReadDir(filepath.Join(s.Root, pkiFolder))
	if err != nil {
		return nil, fmt.Errorf("read the certificates: %w", err)
	}
	for _, file := range certificates {
		if file.Type().IsRegular() && !strings.HasPrefix(file.Name(), ".") { // Others are being written.
			names = append(names, pkiFolder+"/"+file.Name())
		}
	}
	var all []entry
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(s.Root, filepath.FromSlash(name)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the data directory: %w", err)
		}
		all = append(all, entry{name, content})
	}
	return all, nil
}

func (s Source) saveStorage(ctx context.Context, out *archive.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // It ends the stream if the archive could not be written.
	stream, err := pb.NewMaintenanceClient(s.Storage.ActiveConnection()).Snapshot(ctx, &pb.SnapshotRequest{})
	if err != nil {
		return fmt.Errorf("read a snapshot of etcd: %w", err)
	}
	snapshot, err := etcdsnapshot.NewStream(func() ([]byte, uint64, error) {
		part, err := stream.Recv()
		return part.GetBlob(), part.GetRemainingBytes(), err
	})
	if err != nil {
		return err
	}
	return out.Add(etcdEntry, snapshot.Size(), &progress{Reader: snapshot, total: snapshot.Size(), report: s.Progress})
}

func (s Source) saveComponents(out *archive.Writer) (err error) {
	files, err := openFolder(filepath.Join(s.Root, "components"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	content := files.Reader()
	defer content.Close() // It ends the writer of the pipe.
	return out.Add(componentsEntry, files.size, content)
}

// progress reports how much was read.
type progress struct {
	io.Reader
	done, total int64
	report      func(done, total int64)
}

// Read implements io.Reader.
func (p *progress) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	p.done += int64(n)
	if p.report != nil && n > 0 {
		p.report(p.done, p.total)
	}
	return n, err
}
