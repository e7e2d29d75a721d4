package backup

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// page is how many objects are read per request.
const page = 100

// clusters is where etcd has Clusters.
const clusters = "/registry/cluster.x-k8s.io/clusters/"

// namers are where etcd has the other objects that Machines, or machines of pools, are named by. The API server stores all of them as JSON.
func namers() []string {
	return []string{
		"/registry/cluster.x-k8s.io/machinesets/",
		"/registry/controlplane.cluster.x-k8s.io/kubeadmcontrolplanes/",
		"/registry/infrastructure.cluster.x-k8s.io/inmemorymachinepools/",
		"/registry/infrastructure.cluster.x-k8s.io/dockermachinepools/",
		"/registry/infrastructure.cluster.x-k8s.io/devmachinepools/",
	}
}

// mark marks objects before any controller reads them: what runs may be newer than they are. New Machines get names that were never used,
// and Clusters are paused until they have been compared. It returns the Clusters that it has paused, as namespace/name. Clusters that
// were paused before stay paused, and those that are being deleted are not paused.
func mark(ctx context.Context, etcd clientv3.KV, backup, now time.Time) ([]string, error) {
	var paused []string
	err := update(ctx, etcd, clusters, func(cluster *unstructured.Unstructured) error {
		restored := map[string]string{clusterv1.RestoredAnnotation: now.UTC().Format(time.RFC3339)}
		before, _, err := unstructured.NestedBool(cluster.Object, "spec", "paused")
		if err != nil {
			return err
		}
		if !before && cluster.GetDeletionTimestamp() == nil {
			restored[clusterv1.PausedByRestoreAnnotation] = backup.UTC().Format(time.RFC3339)
			if err := unstructured.SetNestedField(cluster.Object, true, "spec", "paused"); err != nil {
				return err
			}
			paused = append(paused, cluster.GetNamespace()+"/"+cluster.GetName())
		}
		annotate(cluster, restored)
		return nil
	})
	for _, prefix := range namers() {
		if err == nil {
			err = update(ctx, etcd, prefix, func(o *unstructured.Unstructured) error {
				annotate(o, map[string]string{clusterv1.RestoredAnnotation: now.UTC().Format(time.RFC3339)})
				return nil
			})
		}
	}
	if err != nil {
		return nil, fmt.Errorf("mark Clusters as restored: %w", err)
	}
	slices.Sort(paused)
	return paused, nil
}

func annotate(o *unstructured.Unstructured, added map[string]string) {
	all := o.GetAnnotations()
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, added)
	o.SetAnnotations(all)
}

// update changes all objects below a prefix.
func update(ctx context.Context, etcd clientv3.KV, prefix string, change func(*unstructured.Unstructured) error) error {
	for from, end := prefix, clientv3.GetPrefixRangeEnd(prefix); ; {
		answer, err := etcd.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(page))
		if err != nil {
			return err
		}
		for _, kv := range answer.Kvs {
			o := &unstructured.Unstructured{}
			if err := utiljson.Unmarshal(kv.Value, &o.Object); err != nil {
				return fmt.Errorf("decode %s: %w", kv.Key, err)
			}
			if err := change(o); err != nil {
				return fmt.Errorf("change %s: %w", kv.Key, err)
			}
			raw, err := json.Marshal(o.Object)
			if err != nil {
				return fmt.Errorf("encode %s: %w", kv.Key, err)
			}
			if _, err := etcd.Put(ctx, string(kv.Key), string(raw)); err != nil {
				return err
			}
		}
		if !answer.More {
			return nil
		}
		from = string(answer.Kvs[len(answer.Kvs)-1].Key) + "\x00"
	}
}
