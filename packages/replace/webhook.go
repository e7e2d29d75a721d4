package replace

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"sigs.k8s.io/cluster-api/packages/replace/merge"
	"sigs.k8s.io/cluster-api/packages/replace/stage"
)

const (
	// trustPoll is a part of what the client may request: changes of several providers wait at the same time.
	trustPoll    = 500 * time.Millisecond
	trustTimeout = 30 * time.Second
)

// prepareWebhooks makes sure that the API server trusts the webhooks that a cut-over writes. Their manifests have no CA bundle,
// because managers or cert-manager write it: until they do, every request to a webhook fails. So bundles are taken from
// other webhooks of the same Service; and configurations for which there are none are written so that failures are ignored,
// until they have one.
func (r *run) prepareWebhooks(ctx context.Context, steps []stage.Step) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(parallelRequests)
	for _, live := range r.all() {
		// The new version has added its CA since these were read.
		if isWebhook(&live) {
			group.Go(func() error { return r.refresh(groupCtx, &live) })
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	bundles := merge.BundlesOf(r.all()...)
	for i := range steps {
		if !isWebhook(steps[i].Object) {
			continue
		}
		o := steps[i].Object.DeepCopy()
		bundles.Fill(o)
		steps[i].Object = o
		if !merge.Untrusted(o) {
			continue
		}
		if err := r.introduce(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// introduce writes a webhook configuration whose failures are ignored, and waits until it has CA bundles. If they are not
// written in time, the webhooks are the provider's to repair, as they are after an installation.
func (r *run) introduce(ctx context.Context, desired *unstructured.Unstructured) error {
	lenient := desired.DeepCopy()
	merge.IgnoreFailures(lenient)
	if err := r.write(ctx, lenient, merge.Final); err != nil {
		return err
	}
	r.report("waiting for the CA bundle of %s %s", desired.GetKind(), desired.GetName())
	return r.awaitTrust(ctx, desired, trustPoll, trustTimeout)
}

// awaitTrust waits until a webhook configuration has CA bundles, at most for a time. Requests are not made with its end as their deadline:
// near it, the client's rate limiter would reject them, which is not an error of the upgrade.
func (r *run) awaitTrust(ctx context.Context, desired *unstructured.Unstructured, poll, timeout time.Duration) error {
	err := wait.PollUntilContextTimeout(ctx, poll, timeout, true, func(context.Context) (bool, error) {
		if err := r.refresh(ctx, desired); err != nil {
			return false, err
		}
		live := r.get(desired)
		return live != nil && !merge.Untrusted(live), nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return nil
	}
	return err
}

func isWebhook(o *unstructured.Unstructured) bool {
	return o.GetKind() == "ValidatingWebhookConfiguration" || o.GetKind() == "MutatingWebhookConfiguration"
}
