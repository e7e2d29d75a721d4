package restore

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// follower follows a ControlPlaneRestore.
type follower struct {
	*Options
	management *management.Cluster
	key        types.NamespacedName
	// steps is how many steps were reported as complete, said the last message.
	steps int
	said  string
}

// confirm waits until the restore says what it would do, and lets users confirm that. Otherwise it deletes the object.
func (f *follower) confirm(ctx context.Context) error {
	err := f.confirmed(ctx)
	if err != nil {
		r := &fleetv1.ControlPlaneRestore{}
		r.Namespace, r.Name = f.key.Namespace, f.key.Name
		err = errors.Join(err, client.IgnoreNotFound(f.management.Client.Delete(context.WithoutCancel(ctx), r)))
	}
	return err
}

func (f *follower) confirmed(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, f.Timeout)
	defer cancel()
	r, err := f.until(ctx, func(r *fleetv1.ControlPlaneRestore) bool {
		c := report.Get(r, fleetv1.OperationCompletedCondition)
		return r.Ended() || c != nil && (c.Reason == fleetv1.OperationNotConfirmedReason || c.Reason == fleetv1.OperationRefusedReason)
	})
	if err != nil {
		return fmt.Errorf("ControlPlaneRestore %s: %w", f.key, err)
	}
	c := report.Get(r, fleetv1.OperationCompletedCondition)
	if c == nil || c.Reason != fleetv1.OperationNotConfirmedReason {
		return fmt.Errorf("the restore is refused, and nothing is changed: %s", message(r))
	}
	other := r.Status.Backup.OtherCluster
	if other && f.Yes && !f.AcceptOtherCluster {
		return fmt.Errorf("the restore needs --accept-other-cluster, and nothing is changed: %s", c.Message)
	}
	value := fmt.Sprintf("%s@%d", f.ClusterName, r.Status.Backup.Revision)
	if f.Yes {
		f.IO.Infof("%s", c.Message)
	} else if err := f.IO.Ask(c.Message, value, "--confirm or --yes"); err != nil {
		return err
	}
	before := r.DeepCopy()
	r.Spec.Confirm = value
	if other {
		r.Spec.AcceptOtherCluster = ptr.To(true) // The question, or the flag, has said so.
	}
	if err := f.management.Client.Patch(ctx, r, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("cannot confirm ControlPlaneRestore %s: %w", f.key, err)
	}
	return nil
}

// follow waits until the restore has ended, and prints its steps.
func (f *follower) follow(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, f.Timeout)
	defer cancel()
	r, err := f.until(limited, (*fleetv1.ControlPlaneRestore).Ended)
	switch {
	case limited.Err() != nil && ctx.Err() == nil:
		return fmt.Errorf("ControlPlaneRestore %s has not ended after %s; it goes on: see `kubectl describe controlplanerestore %s -n %s`",
			f.key.Name, f.Timeout, f.key.Name, f.key.Namespace)
	case err != nil:
		return fmt.Errorf("ControlPlaneRestore %s: %w", f.key, err)
	case r.Status.Phase == fleetv1.OperationPhaseFailed:
		return fmt.Errorf("ControlPlaneRestore %s has failed: %s", f.key.Name, message(r))
	}
	for _, warning := range r.Status.Warnings {
		f.IO.Warnf("%s", warning)
	}
	f.IO.Infof("The control plane of cluster %s is restored; its other Machines are being created: see `%s`", f.ClusterName,
		f.IO.Command("clusterctl describe cluster %s -n %s", f.ClusterName, f.key.Namespace))
	return nil
}

// until watches the restore until it is as wanted, over as many watches as it takes, and prints what happens.
func (f *follower) until(ctx context.Context, is func(*fleetv1.ControlPlaneRestore) bool) (*fleetv1.ControlPlaneRestore, error) {
	for {
		events, err := f.management.Client.Watch(ctx, &fleetv1.ControlPlaneRestoreList{}, client.InNamespace(f.key.Namespace),
			client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", f.key.Name)})
		if err != nil {
			return nil, err
		}
		r, err := f.wait(events, is)
		events.Stop()
		if r != nil || err != nil {
			return r, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

func (f *follower) wait(events watch.Interface, is func(*fleetv1.ControlPlaneRestore) bool) (*fleetv1.ControlPlaneRestore, error) {
	for event := range events.ResultChan() {
		r, ok := event.Object.(*fleetv1.ControlPlaneRestore)
		if !ok {
			continue
		}
		if event.Type == watch.Deleted {
			return nil, errors.New("it was deleted")
		}
		f.print(r)
		if is(r) {
			return r, nil
		}
	}
	return nil, nil
}

// print prints the steps that have been completed, and what the present one waits for.
func (f *follower) print(r *fleetv1.ControlPlaneRestore) {
	for ; f.steps < len(r.Status.Steps) && r.Status.Steps[f.steps].CompletionTime != nil; f.steps++ {
		f.IO.Infof("%s: %s", r.Status.Steps[f.steps].Name, r.Status.Steps[f.steps].Message)
	}
	c := report.Get(r, fleetv1.OperationCompletedCondition)
	if c == nil || c.Reason != fleetv1.OperationWaitingReason || c.Message == f.said {
		return
	}
	f.said = c.Message
	f.IO.Infof("%s", c.Message)
}

// message returns what the condition of a restore says.
func message(r *fleetv1.ControlPlaneRestore) string {
	if c := report.Get(r, fleetv1.OperationCompletedCondition); c != nil {
		return c.Message
	}
	return ""
}
