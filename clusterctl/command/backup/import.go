package backup

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// runImport asks the provider, which can read the store, to import archives.
func runImport(ctx context.Context, o *Options) error {
	m, err := o.Connect(o.Kubeconfig)
	if err != nil {
		return err
	}
	cluster := m.Key(o.Namespace, o.ClusterName)
	key, of := client.ObjectKey{Namespace: cluster.Namespace, Name: o.Store}, &fleetv1.BackupStore{}
	err = m.Client.Get(ctx, key, of)
	switch {
	case meta.IsNoMatchError(err):
		return management.NoFleet()
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no BackupStore %s in namespace %s", key.Name, key.Namespace)
	case err != nil:
		return m.OrNotInitialized(ctx, err)
	}
	asked := o.ClusterName + "/" + o.Clock.Now().UTC().Format(time.RFC3339)
	before := of.DeepCopy()
	if of.Annotations == nil {
		of.Annotations = map[string]string{}
	}
	of.Annotations[fleetv1.ImportAnnotation] = asked
	if err := m.Client.Patch(ctx, of, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("cannot set annotation %s of BackupStore %s: %w", fleetv1.ImportAnnotation, key, err)
	}
	if o.NoWait {
		return nil
	}
	return o.followImport(ctx, m, key, asked)
}

// followImport waits until the archives are imported.
func (o *Options) followImport(ctx context.Context, m *management.Cluster, key types.NamespacedName, asked string) error {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	for {
		of, err := imported(ctx, m, key, asked)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("the archives are not imported after %s: see the conditions of BackupStore %s", o.Timeout, key)
		case err != nil:
			return fmt.Errorf("cannot read BackupStore %s: %w", key, err)
		case of == nil:
			continue
		}
		c := report.Get(of, fleetv1.StoreImportedCondition)
		if of.Status.Imported != asked {
			return fmt.Errorf("the archives of BackupStore %s could not be imported: %s", key, c.Message)
		}
		o.IO.Infof("%s: see `%s`", c.Message, o.IO.Command("clusterctl get backups %s -n %s", o.ClusterName, key.Namespace))
		return nil
	}
}

// imported watches the store until the import has ended, or the watch has. It is nil in the latter case.
func imported(ctx context.Context, m *management.Cluster, key types.NamespacedName, asked string) (*fleetv1.BackupStore, error) {
	events, err := m.Client.Watch(ctx, &fleetv1.BackupStoreList{}, client.InNamespace(key.Namespace),
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", key.Name)})
	if err != nil {
		return nil, err
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		of, ok := event.Object.(*fleetv1.BackupStore)
		if !ok {
			continue
		}
		if event.Type == watch.Deleted {
			return nil, errors.New("it was deleted")
		}
		c := report.Get(of, fleetv1.StoreImportedCondition)
		if c == nil {
			continue
		}
		if of.Status.Imported == asked || c.Reason == fleetv1.StoreImportInvalidReason {
			return of, nil
		}
	}
	return nil, nil
}
