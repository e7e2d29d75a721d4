package cluster

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/check"
)

// lookup is the result of reading a class.
type lookup struct {
	// class is nil unless it exists and has been reconciled.
	class *clusterv1.ClusterClass
	// reason is why class is nil.
	reason error
	// missing is set if the class does not exist.
	missing bool
	// paused is set if the class exists and is paused: it will not be reconciled soon.
	paused bool
}

// class reads a class. It returns an error only if reading fails, not if the class cannot be used.
func (w *Webhook) class(ctx context.Context, key client.ObjectKey) (lookup, error) {
	class := &clusterv1.ClusterClass{}
	switch err := w.options.Reader.Get(ctx, key, class); {
	case apierrors.IsNotFound(err):
		return lookup{reason: err, missing: true}, nil
	case err != nil:
		return lookup{}, err
	}
	if err := check.Ready(class); err != nil {
		_, paused := class.Annotations[clusterv1.PausedAnnotation]
		return lookup{reason: err, paused: paused}, nil
	}
	return lookup{class: class}, nil
}

// waitForClass reads a class, and waits some time for it to be created and reconciled. A class that is paused is not waited for: it
// belongs to a move, which creates it before its Clusters and resumes it after them.
func (w *Webhook) waitForClass(ctx context.Context, key client.ObjectKey) (lookup, error) {
	var waited time.Duration
	for {
		found, err := w.class(ctx, key)
		if err != nil || found.class != nil || found.paused {
			return found, err
		}
		if waited >= classTimeout || found.missing && waited >= missingClassTimeout {
			return found, nil
		}
		select {
		case <-ctx.Done():
			return found, nil
		case <-w.options.Clock.After(classInterval):
			waited += classInterval
		}
	}
}
