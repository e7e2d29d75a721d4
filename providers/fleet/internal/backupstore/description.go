package backupstore

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/content"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/store"
)

// maxDescription is how large a description may be: many times what the provider writes.
const maxDescription = 64 << 10

// ErrDescription is matched by errors about a description that is missing, or not one.
var ErrDescription = errors.New("the description of the archive is unusable")

// Description reads what is described beside an archive: the EtcdBackup that made it. Others may have written it,
// so that only the fields that are checked here may be used: spec.encryption, which the API server validates, and, in status,
// startTime, archive, etcd and kubernetesVersion.
func Description(ctx context.Context, from store.Store, key string) (*fleetv1.EtcdBackup, error) {
	unusable := func(why string) error {
		return fmt.Errorf("%w: %s: %s", ErrDescription, key+content.DescriptionSuffix, why)
	}
	description, err := from.Get(ctx, key+content.DescriptionSuffix)
	if errors.Is(err, store.ErrNotFound) {
		return nil, unusable("it is missing in the store")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the description of the archive: %w", err)
	}
	defer func() { _ = description.Close() }() // It was only read.
	raw, err := io.ReadAll(io.LimitReader(description, maxDescription+1))
	if err != nil {
		return nil, fmt.Errorf("reading the description of the archive: %w", err)
	}
	b := &fleetv1.EtcdBackup{}
	if len(raw) > maxDescription || json.Unmarshal(raw, b) != nil {
		return nil, unusable("it is not an EtcdBackup as JSON")
	}
	status := &b.Status
	switch {
	case status.Archive == nil || status.Etcd == nil:
		return nil, unusable("it has no status of an archive")
	case !strings.HasPrefix(key, b.Namespace+"/"+b.Spec.ClusterName+"/") || status.Archive.Key != key:
		return nil, unusable("it is about another archive")
	case !isSHA256(status.Archive.SHA256) || status.Archive.SizeBytes <= 0 || status.Etcd.SizeBytes <= 0:
		return nil, unusable("its size or checksum is invalid")
	case !words(append(status.Archive.Contents, status.Etcd.Member, status.Etcd.ClusterID, status.Etcd.SHA256, status.Etcd.Version,
		status.KubernetesVersion)):
		return nil, unusable("its status is invalid")
	}
	return b, nil
}

func isSHA256(text string) bool {
	raw, err := hex.DecodeString(text)
	return err == nil && len(raw) == 32
}

// words reports whether texts are few, short, and can be shown.
func words(texts []string) bool {
	for _, text := range texts {
		if len(text) > 253 || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return false
		}
	}
	return len(texts) < 20
}
