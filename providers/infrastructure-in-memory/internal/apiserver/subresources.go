package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/apiserver/change"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/apiserver/columns"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

// scaleOf returns the Scale of an object with replicas.
func scaleOf(u *unstructured.Unstructured) (*autoscalingv1.Scale, error) {
	var parts struct {
		Spec struct {
			Replicas int32                 `json:"replicas"`
			Selector *metav1.LabelSelector `json:"selector"`
		} `json:"spec"`
		Status struct {
			Replicas int32 `json:"replicas"`
		} `json:"status"`
	}
	text, err := json.Marshal(u.Object)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if err := json.Unmarshal(text, &parts); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return &autoscalingv1.Scale{
		TypeMeta: metav1.TypeMeta{Kind: scaleKind.Kind, APIVersion: scaleKind.GroupVersion().String()},
		ObjectMeta: metav1.ObjectMeta{
			Name: u.GetName(), Namespace: u.GetNamespace(), UID: u.GetUID(),
			ResourceVersion: u.GetResourceVersion(), CreationTimestamp: u.GetCreationTimestamp(),
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: parts.Spec.Replicas},
		Status: autoscalingv1.ScaleStatus{Replicas: parts.Status.Replicas, Selector: metav1.FormatLabelSelector(parts.Spec.Selector)},
	}, nil
}

// scale gets or updates the Scale.
func (c *call) scale() error {
	if c.verb == "get" {
		o, err := c.group.Get(c.key())
		if err != nil {
			return err
		}
		return c.answerScale(o)
	}
	change, err := c.scaleChange()
	if err != nil {
		return err
	}
	updated, err := c.group.Update(c.key(), c.writeOptions(), func(current *store.Object) (*unstructured.Unstructured, error) {
		live := current.Unstructured()
		before, err := scaleOf(live)
		if err != nil {
			return nil, err
		}
		after, err := change(before)
		if err != nil {
			return nil, err
		}
		if after.Spec.Replicas < 0 {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("spec.replicas is %d: it must not be negative", after.Spec.Replicas))
		}
		next := live.DeepCopy()
		next.SetResourceVersion(after.ResourceVersion)
		if err := unstructured.SetNestedField(next.Object, int64(after.Spec.Replicas), "spec", "replicas"); err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		return c.server.appliers.Track(c.resource.managed(), c.subresource, live, next, c.manager()), nil
	})
	if err != nil {
		return err
	}
	return c.answerScale(updated)
}

// scaleChange returns the Scale requested by the client.
func (c *call) scaleChange() (func(*autoscalingv1.Scale) (*autoscalingv1.Scale, error), error) {
	if c.verb == "update" {
		decoded, err := c.decodeBody(scaleKind)
		if err != nil {
			return nil, err
		}
		wanted, ok := decoded.(*autoscalingv1.Scale)
		if !ok {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("expected a Scale, not a %T", decoded))
		}
		return func(*autoscalingv1.Scale) (*autoscalingv1.Scale, error) { return wanted, nil }, nil
	}
	body, mediaType, err := c.readBody()
	if err != nil {
		return nil, err
	}
	t := types.PatchType(mediaType)
	if t == types.ApplyPatchType {
		// For a single field, merging is equivalent to applying.
		t = types.MergePatchType
	}
	if t != types.JSONPatchType {
		if body, err = toJSON(body); err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("decode patch: %v", err))
		}
	}
	return func(before *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
		text, err := json.Marshal(before)
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		if text, err = change.ApplyPatch(t, text, body, scaleKind); err != nil {
			return nil, err
		}
		after := &autoscalingv1.Scale{}
		if err := json.Unmarshal(text, after); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return after, nil
	}, nil
}

func (c *call) answerScale(o *store.Object) error {
	scale, err := scaleOf(o.Unstructured())
	if err != nil {
		return err
	}
	return c.answerJSON(http.StatusOK, scale)
}

// evict deletes a Pod if its PodDisruptionBudgets allow one more disruption.
func (c *call) evict() error {
	decoded, err := c.decodeBody(evictionKind)
	if err != nil {
		return err
	}
	eviction, ok := decoded.(*policyv1.Eviction)
	if !ok {
		return apierrors.NewBadRequest(fmt.Sprintf("expected an Eviction, not a %T", decoded))
	}
	pod, err := c.group.Get(c.key())
	if err != nil {
		return err
	}
	if err := c.checkBudgets(pod); err != nil {
		return err
	}
	sent := metav1.DeleteOptions{}
	if eviction.DeleteOptions != nil {
		sent = *eviction.DeleteOptions
	}
	options, err := c.readDeleteOptions(sent)
	if err != nil {
		return err
	}
	if _, _, err := c.group.Delete(c.key(), options); err != nil {
		return err
	}
	return c.answerJSON(http.StatusCreated, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess, Code: http.StatusCreated,
	})
}

func (c *call) checkBudgets(pod *store.Object) error {
	budgets, _ := c.group.List(store.Resource{Group: policyv1.GroupName, Resource: "poddisruptionbudgets"}, c.namespace, store.Selector{})
	for _, o := range budgets {
		var budget policyv1.PodDisruptionBudget
		if err := o.Into(&budget); err != nil {
			return err
		}
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil || !selector.Matches(pod.Labels()) {
			continue
		}
		if allowed := c.disruptionsAllowed(&budget, selector); allowed <= 0 {
			refusal := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
			refusal.ErrStatus.Details.Causes = []metav1.StatusCause{{
				Type:    policyv1.DisruptionBudgetCause,
				Message: fmt.Sprintf("The disruption budget %s does not allow evicting pods currently", budget.Name),
			}}
			return refusal
		}
	}
	return nil
}

// disruptionsAllowed returns how many ready Pods of a budget exceed its minimum.
func (c *call) disruptionsAllowed(budget *policyv1.PodDisruptionBudget, selector labels.Selector) int {
	covered, _ := c.group.List(c.resource.groupResource(), budget.Namespace, store.Selector{Labels: selector})
	healthy := 0
	for _, o := range covered {
		var pod corev1.Pod
		if o.Into(&pod) == nil && columns.PodReady(&pod) && pod.DeletionTimestamp == nil {
			healthy++
		}
	}
	desired := 0
	switch {
	case budget.Spec.MinAvailable != nil:
		desired, _ = intstr.GetScaledValueFromIntOrPercent(budget.Spec.MinAvailable, len(covered), true)
	case budget.Spec.MaxUnavailable != nil:
		unavailable, _ := intstr.GetScaledValueFromIntOrPercent(budget.Spec.MaxUnavailable, len(covered), true)
		desired = len(covered) - unavailable
	}
	return healthy - desired
}
