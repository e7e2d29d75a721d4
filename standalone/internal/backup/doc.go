// Package backup saves the data directory of a management cluster in one encrypted file, and restores it to another directory.
//
// An archive (package archive) has these entries:
//
//	backup.json           what it is a backup of, see Manifest
//	encryption-keys.yaml  the keys that Secrets in etcd are encrypted with
//	pki/...               the CA, and the keys of the API server and of ServiceAccount tokens
//	secure-port           the port of the API server
//	etcd.db               a snapshot of etcd, with its hash
//	components.tar        what components have stored, such as the contents of simulated clusters
//
// Saving does not stop the management cluster. etcd answers with one consistent state. Keys are read before it, and again after it,
// because a start of capi can add one. Files of components are opened after it: what they describe may be newer than the objects, never
// older, as after a kill.
//
// Restoring writes to a folder beside the data directory, and renames it when everything is complete and has been checked. Then Clusters
// are marked: what runs may be newer than the backup, see ADR 0064.
//
// When backups are made, and where they are stored, is for package command; starting etcd is for package controlplane.
package backup

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
)

// Entries of an archive.
const (
	manifestEntry   = "backup.json"
	keysEntry       = "encryption-keys.yaml"
	portEntry       = "secure-port"
	etcdEntry       = "etcd.db"
	componentsEntry = "components.tar"
	pkiFolder       = "pki"
)

const (
	// kind is Manifest.Kind.
	kind = "capi-data-directory"
	// format is the version of the archive's content. A program reads its own and earlier ones.
	format = 1
)

// Manifest describes a backup.
type Manifest struct {
	// Kind distinguishes it from archives with other contents.
	Kind string `json:"kind"`
	// Format is the version of the archive's content.
	Format int `json:"format"`
	// Created is when the backup began, in UTC: what it contains is not older.
	Created time.Time `json:"created"`
	// Capi is the version of the program that has saved it, and Kubernetes that of the API server that has written the data.
	Capi       string `json:"capi"`
	Kubernetes string `json:"kubernetes"`
	// Revision is etcd's revision when the backup began.
	Revision int64 `json:"revision"`
}

// parse reads a manifest, and checks that this program, whose API server has this version, can restore the backup.
func parse(raw []byte, kubernetes string) (Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(raw, &m); err != nil || m.Kind != kind {
		return m, ErrOther
	}
	if m.Format > format {
		return m, fmt.Errorf("the backup has format %d of a newer capi (%s), and this one reads up to %d: use the newer capi",
			m.Format, m.Capi, format)
	}
	theirs, err := version.ParseGeneric(m.Kubernetes)
	if err != nil {
		return m, fmt.Errorf("%s does not contain a Kubernetes version: %w", manifestEntry, err)
	}
	ours, err := version.ParseGeneric(kubernetes)
	if err != nil {
		return m, fmt.Errorf("parse this program's Kubernetes version: %w", err)
	}
	if theirs.Major() > ours.Major() || theirs.Major() == ours.Major() && theirs.Minor() > ours.Minor() {
		return m, fmt.Errorf("the backup is of a newer capi (%s) with Kubernetes %s, but this one has %s: use the newer capi",
			m.Capi, m.Kubernetes, kubernetes)
	}
	return m, nil
}

// ErrOther is returned for an archive that is not a backup of a data directory of capi.
var ErrOther = errors.New("the archive is not a backup of a data directory of capi: clusterctl has its own backups of workload clusters")
