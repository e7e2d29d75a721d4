package backupstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/store"
)

// ErrInvalid is matched by errors about the spec of a BackupStore and the Secret with its credentials: a change of one of them is needed.
var ErrInvalid = errors.New("the BackupStore is invalid")

// ErrNoStore is matched by the error for a BackupStore that does not exist, which is an ErrInvalid, too.
var ErrNoStore = errors.New("the BackupStore does not exist")

// Opener opens stores.
type Opener struct {
	// Stores reads BackupStores, Secrets reads Secrets.
	Stores, Secrets client.Reader
	// DataDir is the directory below which directories of BackupStores are. Empty: BackupStores cannot be directories.
	DataDir string
	// AllowLocal allows buckets at loopback, link-local and multicast addresses.
	AllowLocal bool
}

// Named opens the store of a BackupStore. The error is ErrInvalid if there is none.
func (o Opener) Named(ctx context.Context, namespace, name string) (store.Store, error) {
	s := &fleetv1.BackupStore{}
	if err := o.Stores.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, s); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, missingError(fmt.Sprintf("BackupStore %s does not exist in namespace %s", name, namespace))
		}
		return nil, fmt.Errorf("reading BackupStore %s: %w", name, err)
	}
	return o.Open(ctx, s)
}

// missingError is an error that is both ErrInvalid and ErrNoStore.
type missingError string

// Error implements error.
func (n missingError) Error() string { return string(n) }

// Is makes errors.Is true for both.
func (missingError) Is(target error) bool { return target == ErrInvalid || target == ErrNoStore }

// Open opens the store of a BackupStore. It sends requests to the management cluster only.
func (o Opener) Open(ctx context.Context, s *fleetv1.BackupStore) (store.Store, error) {
	switch {
	case s.Spec.S3 != nil:
		return o.bucket(ctx, s)
	case s.Spec.Directory != nil:
		return o.directory(s)
	}
	return nil, fmt.Errorf("%w: one of spec.s3 and spec.directory must be set", ErrInvalid)
}

func (o Opener) bucket(ctx context.Context, s *fleetv1.BackupStore) (store.Store, error) {
	spec, secret := s.Spec.S3, &corev1.Secret{}
	if err := o.Secrets.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: spec.CredentialsRef.Name}, secret); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("%w: Secret %s (spec.s3.credentialsRef) does not exist", ErrInvalid, spec.CredentialsRef.Name)
		}
		return nil, fmt.Errorf("reading Secret %s (spec.s3.credentialsRef): %w", spec.CredentialsRef.Name, err)
	}
	for _, key := range []string{fleetv1.AccessKeyIDKey, fleetv1.SecretAccessKeyKey} {
		if len(secret.Data[key]) == 0 {
			return nil, fmt.Errorf("%w: Secret %s (spec.s3.credentialsRef) has no key %s", ErrInvalid, secret.Name, key)
		}
	}
	opened, err := store.NewS3(store.S3Options{
		Endpoint: spec.Endpoint, Bucket: spec.Bucket, Prefix: spec.Prefix, Region: spec.Region,
		ForcePathStyle: ptr.Deref(spec.ForcePathStyle, false), CABundle: spec.CABundle, AllowLocal: o.AllowLocal,
		AccessKeyID:     string(secret.Data[fleetv1.AccessKeyIDKey]),
		SecretAccessKey: string(secret.Data[fleetv1.SecretAccessKeyKey]),
		SessionToken:    string(secret.Data[fleetv1.SessionTokenKey]),
	})
	if err != nil {
		return nil, fmt.Errorf("%w: spec.s3: %w", ErrInvalid, err)
	}
	return opened, nil
}

func (o Opener) directory(s *fleetv1.BackupStore) (store.Store, error) {
	if o.DataDir == "" {
		return nil, fmt.Errorf("%w: spec.directory: this manager has no directory for backups, set its flag --data-dir", ErrInvalid)
	}
	if !filepath.IsLocal(s.Spec.Directory.Path) {
		return nil, fmt.Errorf("%w: spec.directory.path: %q is not below the manager's --data-dir", ErrInvalid, s.Spec.Directory.Path)
	}
	// The store itself follows no symbolic link out of its directory; this one is below the manager's own.
	if err := os.MkdirAll(o.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the directory of backups: %w", err)
	}
	root, err := os.OpenRoot(o.DataDir)
	if err != nil {
		return nil, fmt.Errorf("opening the directory of backups: %w", err)
	}
	defer func() { _ = root.Close() }() // It was only opened.
	if err := root.MkdirAll(s.Spec.Directory.Path, 0o700); err != nil {
		return nil, fmt.Errorf("%w: spec.directory.path: %w", ErrInvalid, err)
	}
	return store.NewDirectory(filepath.Join(o.DataDir, s.Spec.Directory.Path))
}
