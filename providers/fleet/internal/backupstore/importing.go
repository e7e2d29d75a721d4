package backupstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/store"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/naming"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// A store may have any number of objects, of anyone. At most maxListed are looked at, and at most maxImported EtcdBackups are created for
// one value of the annotation: those of the newest archives.
const maxListed, maxImported = 50_000, 500

// Ends of the keys of archives and of the descriptions beside them.
const archiveEnd, descriptionEnd = ".age", ".age.json"

// uidLength is the length of the UID at the end of the names of archives.
const uidLength = 36

// importing creates EtcdBackups for archives, once for each value of the annotation. Package backup adopts the archives.
func (c *Controller) importing(ctx context.Context, s *scope) (step.Result, error) {
	asked := s.store.Annotations[fleetv1.ImportAnnotation]
	if asked == "" || asked == s.store.Status.Imported {
		return step.Done(), nil
	}
	cluster, _, _ := strings.Cut(asked, "/")
	if problems := validation.IsDNS1123Subdomain(cluster); cluster != "*" && len(problems) > 0 {
		s.imported = new(report.False(fleetv1.StoreImportedCondition, fleetv1.StoreImportInvalidReason,
			"annotation %s: %q is not the name of a Cluster, and not *", fleetv1.ImportAnnotation, cluster))
		return step.Done(), nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	done, err := c.importAll(ctx, s.store, cluster)
	if err != nil {
		s.imported = new(report.False(fleetv1.StoreImportedCondition, fleetv1.StoreImportFailedReason, "%s", condition.Brief(err.Error())))
		s.again = true
		return step.Done(), nil
	}
	s.store.Status.Imported, s.imported = asked, new(done.condition())
	return step.Done(), nil
}

// outcome is what an import did.
type outcome struct {
	created, existing, left, unusable int
	// because is why the first unusable one is.
	because string
	cut     bool
}

func (o outcome) condition() metav1.Condition {
	message := fmt.Sprintf("%d EtcdBackups were created, %d existed", o.created, o.existing)
	if o.unusable > 0 {
		message += fmt.Sprintf(", %d descriptions of archives are unusable: %s", o.unusable, o.because)
	}
	switch {
	case o.cut:
		return report.True(fleetv1.StoreImportedCondition, fleetv1.StoreImportLimitedReason,
			"%s. The store has more than %d objects: others were not looked at", message, maxListed)
	case o.left > 0:
		return report.True(fleetv1.StoreImportedCondition, fleetv1.StoreImportLimitedReason,
			"%s. %d older archives were left out: delete some of the EtcdBackups, and import again", message, o.left)
	}
	return report.True(fleetv1.StoreImportedCondition, fleetv1.StoreImportedReason, "%s", message)
}

// importAll creates the EtcdBackups of the archives of a Cluster, or of all in the namespace.
func (c *Controller) importAll(ctx context.Context, of *fleetv1.BackupStore, cluster string) (outcome, error) {
	opened, err := c.opener.Open(ctx, of)
	if err != nil {
		return outcome{}, err
	}
	found, cut, err := archives(ctx, opened, of.Namespace, cluster)
	if err != nil {
		return outcome{}, err
	}
	known, err := c.known(ctx, of.Namespace)
	if err != nil {
		return outcome{}, err
	}
	done := outcome{cut: cut}
	for _, a := range found {
		switch {
		case known[a.key]:
			done.existing++
		case done.created+done.unusable == maxImported:
			done.left++
		default:
			err := c.importOne(ctx, of, opened, a)
			switch {
			case err == nil:
				done.created++
			case errors.Is(err, ErrDescription) || apierrors.IsInvalid(err):
				if done.unusable++; done.because == "" {
					done.because = condition.Brief(err.Error())
				}
			default:
				return done, fmt.Errorf("importing archive %s: %w", a.key, err)
			}
		}
	}
	return done, nil
}

// stored is an archive in a store.
type stored struct {
	key, cluster, name string
	modified           time.Time
}

// errEnough ends a list that is too long.
var errEnough = errors.New("enough")

// archives lists the archives that have a description, the newest first: it is written when an archive is complete.
func archives(ctx context.Context, from store.Store, namespace, cluster string) (found []stored, cut bool, err error) {
	prefix := namespace + "/"
	if cluster != "*" {
		prefix += cluster + "/"
	}
	listed := 0
	err = from.List(ctx, prefix, func(e store.Entry) error {
		if listed++; listed > maxListed {
			return errEnough
		}
		if a, ok := archiveOf(e, namespace); ok {
			found = append(found, a)
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, false, err
	}
	slices.SortFunc(found, func(a, b stored) int { return cmp.Or(b.modified.Compare(a.modified), cmp.Compare(a.key, b.key)) })
	return found, err != nil, nil
}

// archiveOf returns the archive that an object describes: its key is <namespace>/<cluster>/<name>-<uid>.age.json.
func archiveOf(e store.Entry, namespace string) (stored, bool) {
	key, isDescription := strings.CutSuffix(e.Key, descriptionEnd)
	parts := strings.Split(key, "/")
	if !isDescription || len(parts) != 3 || parts[0] != namespace || len(parts[2]) < uidLength+2 {
		return stored{}, false
	}
	name := parts[2][:len(parts[2])-uidLength]
	a := stored{key: key + archiveEnd, cluster: parts[1], name: strings.TrimSuffix(name, "-"), modified: e.Modified}
	return a, name != a.name && len(a.cluster) <= validation.DNS1123LabelMaxLength &&
		len(validation.IsDNS1123Subdomain(a.cluster)) == 0 && len(validation.IsDNS1123Subdomain(a.name)) == 0
}

// known returns the keys of archives that have EtcdBackups.
func (c *Controller) known(ctx context.Context, namespace string) (map[string]bool, error) {
	backups := &fleetv1.EtcdBackupList{}
	if err := c.Client.List(ctx, backups, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing EtcdBackups: %w", err)
	}
	keys := map[string]bool{}
	for i := range backups.Items {
		b := &backups.Items[i]
		keys[path.Join(b.Namespace, b.Spec.ClusterName, b.Name+"-"+string(b.UID)+archiveEnd)] = true
		keys[b.Annotations[fleetv1.ArchiveAnnotation]] = true
		if b.Status.Archive != nil {
			keys[b.Status.Archive.Key] = true
		}
	}
	return keys, nil
}

// importOne creates an EtcdBackup that adopts an archive. It belongs to no policy, so that no retention deletes it, and keeps the archive
// when it is deleted: another management cluster may use it. If another EtcdBackup has the name, this one gets a suffix, which follows from
// the archive. One that exists was created before, and is not in the cache yet.
func (c *Controller) importOne(ctx context.Context, of *fleetv1.BackupStore, from store.Store, a stored) error {
	described, err := Description(ctx, from, a.key)
	if err != nil {
		return err
	}
	b := &fleetv1.EtcdBackup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: of.Namespace, Name: a.name,
			Labels:      map[string]string{clusterv1.ClusterNameLabel: naming.LabelValue(a.cluster)},
			Annotations: map[string]string{fleetv1.ArchiveAnnotation: a.key},
			Finalizers:  []string{fleetv1.EtcdBackupFinalizer},
		},
		Spec: fleetv1.EtcdBackupSpec{
			ClusterName: a.cluster, DeletionPolicy: fleetv1.DeletionPolicyRetain,
			BackupSettings: fleetv1.BackupSettings{
				StoreRef: fleetv1.LocalReference{Name: of.Name}, Encryption: described.Spec.Encryption,
				Verification: fleetv1.VerificationChecksum, // It costs one read of each archive, and no key.
			},
		},
	}
	err = c.Create(ctx, b)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	there := &fleetv1.EtcdBackup{}
	if err := c.Live.Get(ctx, client.ObjectKeyFromObject(b), there); err != nil {
		return err
	}
	if there.Annotations[fleetv1.ArchiveAnnotation] == a.key {
		return nil
	}
	b.Name, b.ResourceVersion = naming.WithSuffix(a.name, naming.Suffix(a.key)), ""
	if err := c.Create(ctx, b); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}
