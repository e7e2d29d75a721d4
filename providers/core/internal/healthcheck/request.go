package healthcheck

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// templateBackstop is the delay before a missing template is looked up again in the cache: templates have no watch, because one kind can
// be the template of many checks.
const templateBackstop = 30 * time.Second

// external reports whether Machines are remediated by external requests.
func (s *scope) external() bool { return s.check.Spec.Remediation.TemplateRef.IsDefined() }

// readRequests reads the template and the existing requests from the cache, and watches the requests.
func (c *Controller) readRequests(ctx context.Context, s *scope) error {
	if !s.external() {
		condition.Delete(s.check, clusterv1.ExternalRemediationTemplateAvailableV1Beta1Condition)
		condition.Delete(s.check, clusterv1.ExternalRemediationRequestAvailableV1Beta1Condition)
		return nil
	}
	ref := s.check.Spec.Remediation.TemplateRef
	template, err := c.external.Get(ctx, &clusterv1.ContractVersionedObjectReference{
		APIGroup: schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).Group, Kind: ref.Kind, Name: ref.Name,
	}, s.check.Namespace)
	if err != nil {
		condition.Set(s.check, condition.False(clusterv1.ExternalRemediationTemplateAvailableV1Beta1Condition, clusterv1.ConditionSeverityError,
			clusterv1.ExternalRemediationTemplateNotFoundV1Beta1Reason, "Cannot read spec.remediationTemplate: %v", err))
		return client.IgnoreNotFound(err)
	}
	restored(s.check, clusterv1.ExternalRemediationTemplateAvailableV1Beta1Condition)
	s.template = template
	kind := template.GroupVersionKind()
	kind.Kind = contract.KindOf(kind.Kind)
	if err := c.requestKinds.Watch(ctx, kind, handler.EnqueueRequestsFromMapFunc(c.ofRequest), watch.Deleted()); err != nil {
		return err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	if err := c.Client.List(ctx, list, ownership.InCluster(s.check.Namespace, s.check.Spec.ClusterName)); err != nil {
		return fmt.Errorf("listing %ss: %w", kind.Kind, err)
	}
	s.requests = map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		s.requests[list.Items[i].GetName()] = &list.Items[i]
	}
	return nil
}

// restored sets a condition to True if it was False.
func restored(h *clusterv1.MachineHealthCheck, t clusterv1.ConditionType) {
	if condition.IsFalse(h, t) {
		condition.Set(h, condition.True(t))
	}
}

// requestsChange reports whether requests must be created or deleted.
func (s *scope) requestsChange() bool {
	if s.template == nil || !s.plan.External {
		return false
	}
	for _, m := range s.plan.Remediable() {
		if s.requests[m.Name] == nil {
			return true
		}
	}
	return len(s.finished()) > 0
}

// finished returns the requests of Machines that have recovered. An object of the same name that the Machine does not own is not a request.
func (s *scope) finished() []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, m := range s.plan.Recovered() {
		if r := s.requests[m.Name]; r != nil && ownership.Has(r, m) && r.GetDeletionTimestamp().IsZero() {
			out = append(out, r)
		}
	}
	return out
}

// request creates a request for each Machine that needs remediation, and deletes those of Machines that have recovered. One that fails
// does not stop the others.
func (c *Controller) request(ctx context.Context, s *scope) (step.Result, error) {
	if s.template == nil || !s.plan.External {
		return step.Done(), nil
	}
	var failed, errs []error
	for _, m := range s.plan.Remediable() {
		if r := s.requests[m.Name]; r != nil && ownership.Has(r, m) {
			continue
		}
		err := c.createRequest(ctx, s, m)
		if err != nil {
			failed = append(failed, err)
		}
		errs = append(errs, c.reportRequest(ctx, m, err))
	}
	for _, r := range s.finished() {
		if err := c.DeleteAny(ctx, r); err != nil {
			errs = append(errs, fmt.Errorf("deleting %s %s: %w", r.GetKind(), r.GetName(), err))
		}
	}
	if err := errors.Join(failed...); err != nil {
		condition.Set(s.check, condition.False(clusterv1.ExternalRemediationRequestAvailableV1Beta1Condition, clusterv1.ConditionSeverityError,
			clusterv1.ExternalRemediationRequestCreationFailedV1Beta1Reason, "%s", condition.Brief(failed[0].Error())))
	} else {
		restored(s.check, clusterv1.ExternalRemediationRequestAvailableV1Beta1Condition)
	}
	return step.Done(), errors.Join(append(failed, errs...)...)
}

// reportRequest reports in the condition of a Machine that its request could not be created, or that it was after a failure. Where the
// definition does not have metav1 conditions, there is nothing to report.
func (c *Controller) reportRequest(ctx context.Context, m *clusterv1.Machine, failure error) error {
	const t = clusterv1.MachineExternallyRemediatedCondition
	now := report.False(t, clusterv1.MachineExternallyRemediatedWaitingForRemediationReason, "Waiting for remediation")
	if failure != nil {
		now = report.False(t, clusterv1.MachineExternallyRemediatedRemediationRequestCreationFailedReason,
			"Please check controller logs for errors")
	}
	live := &clusterv1.Machine{}
	if err := c.Client.Get(ctx, client.ObjectKeyFromObject(m), live); err != nil {
		return client.IgnoreNotFound(err)
	}
	if was := report.Get(live, t); was == nil || was.Reason == now.Reason {
		return nil
	}
	return c.SetReports(ctx, live, nil, now)
}

// createRequest creates the request for a Machine, under the name of the Machine.
func (c *Controller) createRequest(ctx context.Context, s *scope, m *clusterv1.Machine) error {
	owner := ownership.Reference(m, clusterv1.GroupVersion.WithKind(clusterv1.MachineKind), false)
	r, err := contract.Clone(contract.CloneInput{
		Template: s.template, Name: m.Name, Namespace: m.Namespace, ClusterName: m.Spec.ClusterName, Owner: &owner,
	})
	if err != nil {
		return err
	}
	err = c.CreateIn(ctx, nil, r)
	if apierrors.IsAlreadyExists(err) {
		return c.existing(ctx, r, m)
	}
	if err != nil {
		return fmt.Errorf("creating %s %s: %w", r.GetKind(), r.GetName(), err)
	}
	c.Recorder.Eventf(m, corev1.EventTypeNormal, "MachineMarkedUnhealthy",
		"Machine is unhealthy: created %s %s, which requests its remediation",
		r.GetKind(), r.GetName())
	return nil
}

// existing checks that an existing object is the request for a Machine, which the cache did not have yet.
func (c *Controller) existing(ctx context.Context, r *unstructured.Unstructured, m *clusterv1.Machine) error {
	live := r.DeepCopy()
	if err := c.Live.Get(ctx, client.ObjectKeyFromObject(r), live); err != nil {
		return fmt.Errorf("reading %s %s: %w", r.GetKind(), r.GetName(), err)
	}
	if !ownership.Has(live, m) {
		return fmt.Errorf("%s %s already exists, but Machine %s does not own it: delete it", r.GetKind(), r.GetName(), m.Name)
	}
	return nil
}
