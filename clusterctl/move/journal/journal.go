// Package journal records in both clusters which move is under way, and how far it is, so that an interrupted move can be
// continued by running the same command again, and nothing else can interfere.
//
// It does not record which objects have been moved: the objects themselves tell.
package journal

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/clusterctl/move/side"
)

// Name is the name of the ConfigMap, in the namespace that is moved, of both clusters.
const Name = "clusterctl-move"

// Phase is how far a move is.
type Phase string

// Phases, in order.
const (
	// Copying: the objects in the source are complete.
	Copying Phase = "Copying"
	// Removing: the objects in the target are complete, and those in the source are removed.
	Removing Phase = "Removing"
	// Resuming: nothing of the move is left in the source, and Clusters in the target are resumed.
	Resuming Phase = "Resuming"
)

// Entry is what is recorded.
type Entry struct {
	// ID is the identity of the move.
	ID string
	// Source and Target are the UIDs of the namespace kube-system of both clusters, or the path of a directory.
	Source, Target string
	// SourceHost and TargetHost are the URLs of the API servers, for users.
	SourceHost, TargetHost string
	Phase                  Phase
	// Created is when the API server created the record; it is not written.
	Created time.Time
}

func (e Entry) data() map[string]string {
	return map[string]string{
		"id": e.ID, "source": e.Source, "target": e.Target, "sourceHost": e.SourceHost, "targetHost": e.TargetHost, "phase": string(e.Phase),
		"about": "A move with clusterctl is under way. Run `clusterctl move` again with the same source and target to continue it.",
	}
}

// Read returns the entry of a cluster, nil if there is none.
func Read(ctx context.Context, s *side.Side, namespace string) (*Entry, error) {
	cm := &corev1.ConfigMap{}
	err := s.Do(ctx, "read the journal of moves", func(ctx context.Context) error {
		return client.IgnoreNotFound(s.Get(ctx, types.NamespacedName{Namespace: namespace, Name: Name}, cm))
	})
	if err != nil || cm.Name == "" {
		return nil, err
	}
	d := cm.Data
	e := &Entry{
		ID:         d["id"],
		Source:     d["source"],
		Target:     d["target"],
		SourceHost: d["sourceHost"],
		TargetHost: d["targetHost"],
		Phase:      Phase(d["phase"]),
		Created:    cm.CreationTimestamp.Time,
	}
	switch e.Phase {
	case Copying, Removing, Resuming:
		return e, nil
	}
	return nil, fmt.Errorf("invalid journal: ConfigMap %s/%s of the %s cluster has phase %q: it was changed, or belongs to a newer clusterctl",
		namespace, Name, s.Name, e.Phase)
}

// Write records the entry. An entry of another move is never replaced.
func Write(ctx context.Context, s *side.Side, namespace string, e Entry) error {
	return s.Do(ctx, "write the journal of moves", func(ctx context.Context) error {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: Name}, Data: e.data()}
		err := s.Create(ctx, cm)
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		if err := s.Get(ctx, client.ObjectKeyFromObject(cm), cm); err != nil {
			return err
		}
		if cm.Data["id"] != e.ID {
			return fmt.Errorf("ConfigMap %s/%s belongs to another move, to %s: wait until it ends, or continue it",
				namespace, Name, cm.Data["targetHost"])
		}
		if cm.Data["phase"] == string(e.Phase) {
			return nil
		}
		cm.Data = e.data()
		return s.Update(ctx, cm)
	})
}

// Delete deletes the entry of a move.
func Delete(ctx context.Context, s *side.Side, namespace string, e Entry) error {
	found, err := Read(ctx, s, namespace)
	if err != nil || found == nil || found.ID != e.ID {
		return err
	}
	return s.Do(ctx, "delete the journal of moves", func(ctx context.Context) error {
		return client.IgnoreNotFound(s.Client.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: Name}}))
	})
}
