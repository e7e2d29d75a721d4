package cluster

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/core/internal/topology/check"
)

// lookup is what reading a class came to.
type lookup struct {
	// class is nil unless it is there and reconciled.
	class *clusterv1.ClusterClass
	// reason says why there is no class that can be used.
	reason error
	// missing tells that there is no class at all.
	missing bool
}

// class reads a class. An error means that it could not be read; that it cannot be used is no error.
func (w *Webhook) class(ctx context.Context, key client.ObjectKey) (lookup, error) {
	class := &clusterv1.ClusterClass{}
	switch err := w.options.Reader.Get(ctx, key, class); {
	case apierrors.IsNotFound(err):
		return lookup{reason: err, missing: true}, nil
	case err != nil:
		return lookup{}, err
	}
	if err := check.Ready(class); err != nil {
		return lookup{reason: err}, nil
	}
	return lookup{class: class}, nil
}

// awaitClass reads a class and gives it some time to appear and to be reconciled.
func (w *Webhook) awaitClass(ctx context.Context, key client.ObjectKey) (lookup, error) {
	var waited time.Duration
	for {
		found, err := w.class(ctx, key)
		if err != nil || found.class != nil {
			return found, err
		}
		if waited >= classTimeout || found.missing && waited >= classMissing {
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
