package replace

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/packages/apply"
)

// troublePoll is how often Pods are checked for failures that do not pass.
const troublePoll = 2 * time.Second

// await waits until a Deployment is available, or until it is clear that it will not be.
func (r *run) await(ctx context.Context, key client.ObjectKey) error {
	r.report("waiting for Deployment %s", key)
	watched, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		for {
			select {
			case <-watched.Done():
				return
			case <-time.After(troublePoll):
			}
			if reason, permanent := apply.Trouble(watched, r.Client, key); permanent {
				cancel(fmt.Errorf("Deployment %s does not start: %s: see `kubectl -n %s describe pods`", key, reason, key.Namespace))
			}
		}
	}()
	err := apply.WaitAvailable(watched, r.Client, key, r.Timeout, func(reason string) {
		r.report("waiting for Deployment %s: %s", key, reason)
	})
	if err == nil || ctx.Err() != nil {
		return err
	}
	if cause := context.Cause(watched); cause != nil {
		err = cause
	}
	if r.lenient {
		r.note(err.Error())
		return nil
	}
	return err
}

func (r *run) note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, text)
}
