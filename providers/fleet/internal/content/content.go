// Package content says what the archives of EtcdBackups contain, and reads it: for their verification, and for restores. Package backup
// writes archives; the format of the file is in backup/archive.
package content

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"filippo.io/age"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/backup/archive"
)

const (
	// Suffix is the end of the keys of archives.
	Suffix = ".age"
	// DescriptionSuffix follows Suffix in the keys of the descriptions beside archives.
	DescriptionSuffix = ".json"
	// FormatVersion is the version of what archives contain.
	FormatVersion = 1
)

// Names of the entries of an archive.
const (
	MetadataEntry = "metadata.json"
	SecretsEntry  = "secrets.yaml"
	ObjectsEntry  = "objects.yaml"
	SnapshotEntry = "etcd.db"
)

// ErrDamaged is matched by the error of an archive that cannot be restored: reading it again does not help.
var ErrDamaged = errors.New("the archive is damaged")

// Metadata describes an archive: its first entry. Without the fields of the snapshot, which is read last, it can be written first.
type Metadata struct {
	FormatVersion     int         `json:"formatVersion"`
	Namespace         string      `json:"namespace"`
	Cluster           string      `json:"cluster"`
	ClusterUID        types.UID   `json:"clusterUID"`
	Backup            string      `json:"backup"`
	Time              metav1.Time `json:"time"`
	Member            string      `json:"member"`
	EtcdClusterID     string      `json:"etcdClusterID"`
	EtcdVersion       string      `json:"etcdVersion,omitempty"`
	KubernetesVersion string      `json:"kubernetesVersion,omitempty"`
}

// Archive is what an archive contains, apart from the snapshot.
type Archive struct {
	Metadata Metadata
	// Secrets are those of the CAs of the Cluster.
	Secrets []corev1.Secret
}

// Extract writes the snapshot of an archive to a file, which must not exist, and returns the rest. The archive is read to its end, and
// complete if there is no error.
func Extract(from io.Reader, keys []age.Identity, file string) (*Archive, error) {
	r, err := archive.NewReader(from, keys...)
	if err != nil {
		return nil, classify(err)
	}
	all, found := &Archive{}, map[string]bool{}
	for {
		name, _, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, classify(err)
		}
		found[name] = true
		switch name {
		case MetadataEntry:
			err = all.readMetadata(r)
		case SecretsEntry:
			err = all.readSecrets(r)
		case SnapshotEntry:
			err = save(r, file)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, name := range []string{MetadataEntry, SecretsEntry, SnapshotEntry} {
		if !found[name] {
			return nil, fmt.Errorf("%w: it has no %s", ErrDamaged, name)
		}
	}
	return all, nil
}

// classify returns the error of reading an archive, as ErrDamaged if another attempt would find the same.
func classify(err error) error {
	if errors.Is(err, archive.ErrDamaged) || errors.Is(err, archive.ErrTruncated) || errors.Is(err, archive.ErrNotArchive) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return fmt.Errorf("reading the archive: %w", err)
}

func (a *Archive) readMetadata(r *archive.Reader) error {
	text, err := r.ReadSmall()
	if err != nil {
		return classify(err)
	}
	if err := json.Unmarshal(text, &a.Metadata); err != nil {
		return fmt.Errorf("%w: its %s: %w", ErrDamaged, MetadataEntry, err)
	}
	return nil
}

// readSecrets reads the Secrets. Errors do not quote them.
func (a *Archive) readSecrets(r *archive.Reader) error {
	text, err := r.ReadSmall()
	if err != nil {
		return classify(err)
	}
	for document := range bytes.SplitSeq(text, []byte("---\n")) {
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		var secret corev1.Secret
		if yaml.Unmarshal(document, &secret) != nil || secret.Name == "" {
			return fmt.Errorf("%w: its %s has a document that is not a Secret", ErrDamaged, SecretsEntry)
		}
		a.Secrets = append(a.Secrets, secret)
	}
	return nil
}

// save writes the current entry to a file.
func save(r *archive.Reader, file string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("writing the snapshot: %w", err)
	}
	if _, err := io.Copy(f, r); err != nil {
		return errors.Join(classify(err), f.Close())
	}
	return f.Close()
}
