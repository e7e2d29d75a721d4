package apiserver

import (
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// prepareCreate validates and defaults an object before it is created.
func (c *call) prepareCreate(o typedObject) error {
	if err := c.checkNamespace(o); err != nil {
		return err
	}
	if o.GetResourceVersion() != "" {
		return apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	if o.GetName() == "" && o.GetGenerateName() != "" {
		o.SetName(c.group.GenerateName(o.GetGenerateName()))
	}
	o.SetUID("")
	o.SetGeneration(0)
	o.SetCreationTimestamp(metav1.Time{})
	setInitialStatus(o)
	setDefaults(o)
	return c.validate(o)
}

// prepareUpdate validates and defaults an object before it replaces an older version.
func (c *call) prepareUpdate(o typedObject) error {
	if err := c.checkNamespace(o); err != nil {
		return err
	}
	if o.GetName() != c.name {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", o.GetName(), c.name))
	}
	setDefaults(o)
	return c.validate(o)
}

func (c *call) checkNamespace(o metav1.Object) error {
	switch {
	case !c.resource.namespaced:
		o.SetNamespace("")
	case o.GetNamespace() == "":
		o.SetNamespace(c.namespace)
	case o.GetNamespace() != c.namespace:
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	return nil
}

// validate validates metadata. A kind's own fields are only validated by decoding them into its Go type: the simulation
// does not depend on them.
func (c *call) validate(o metav1.Object) error {
	validName := validation.ValidateNameFunc(validation.NameIsDNSSubdomain)
	switch {
	case c.resource.gvk.Group == rbacv1.GroupName:
		validName = func(name string, prefix bool) []string {
			if prefix {
				return content.IsPathSegmentPrefix(name)
			}
			return content.IsPathSegmentName(name)
		}
	case c.resource.gvk.Kind == "Namespace":
		validName = validation.NameIsDNSLabel
	case c.resource.gvk.Kind == "Service":
		validName = validation.NameIsDNS1035Label
	}
	errs := validation.ValidateObjectMetaAccessor(o, c.resource.namespaced, validName, field.NewPath("metadata"))
	if len(errs) > 0 {
		return apierrors.NewInvalid(c.resource.gvk.GroupKind(), o.GetName(), errs)
	}
	return nil
}

// setInitialStatus sets the initial status of a new object. Nodes keep theirs: a kubelet registers its Node with its
// status.
func setInitialStatus(o typedObject) {
	switch o := o.(type) {
	case *corev1.Pod:
		o.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBestEffort}
	case *corev1.Namespace:
		o.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceActive}
	case *corev1.PersistentVolume:
		o.Status = corev1.PersistentVolumeStatus{Phase: corev1.VolumePending}
	case *corev1.PersistentVolumeClaim:
		o.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
	case *corev1.Service:
		o.Status = corev1.ServiceStatus{}
	case *appsv1.Deployment:
		o.Status = appsv1.DeploymentStatus{}
	case *appsv1.DaemonSet:
		o.Status = appsv1.DaemonSetStatus{}
	case *appsv1.ReplicaSet:
		o.Status = appsv1.ReplicaSetStatus{}
	case *appsv1.StatefulSet:
		o.Status = appsv1.StatefulSetStatus{}
	}
}

// setDefaults sets the defaults that clients rely on.
func setDefaults(o typedObject) {
	switch o := o.(type) {
	case *corev1.Namespace:
		labels := maps.Clone(o.Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		labels[corev1.LabelMetadataName] = o.Name
		o.Labels = labels
		o.Spec.Finalizers = []corev1.FinalizerName{corev1.FinalizerKubernetes}
	case *corev1.Secret:
		setDefault(&o.Type, corev1.SecretTypeOpaque)
		for key, value := range o.StringData {
			if o.Data == nil {
				o.Data = map[string][]byte{}
			}
			o.Data[key] = []byte(value)
		}
		o.StringData = nil
	case *corev1.Service:
		setServiceDefaults(o)
	case *corev1.Pod:
		setPodDefaults(&o.Spec)
	case *appsv1.Deployment:
		setPointer(&o.Spec.Replicas, 1)
		setPointer(&o.Spec.RevisionHistoryLimit, 10)
		setDefault(&o.Spec.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
		setPodDefaults(&o.Spec.Template.Spec)
	case *appsv1.ReplicaSet:
		setPointer(&o.Spec.Replicas, 1)
		setPodDefaults(&o.Spec.Template.Spec)
	case *appsv1.StatefulSet:
		setPointer(&o.Spec.Replicas, 1)
		setPodDefaults(&o.Spec.Template.Spec)
	case *appsv1.DaemonSet:
		setDefault(&o.Spec.UpdateStrategy.Type, appsv1.RollingUpdateDaemonSetStrategyType)
		setPodDefaults(&o.Spec.Template.Spec)
	}
}

func setServiceDefaults(s *corev1.Service) {
	setDefault(&s.Spec.Type, corev1.ServiceTypeClusterIP)
	setDefault(&s.Spec.SessionAffinity, corev1.ServiceAffinityNone)
	for i := range s.Spec.Ports {
		port := &s.Spec.Ports[i]
		setDefault(&port.Protocol, corev1.ProtocolTCP)
		if port.TargetPort == (intstr.IntOrString{}) {
			port.TargetPort = intstr.FromInt32(port.Port)
		}
	}
}

func setPodDefaults(s *corev1.PodSpec) {
	setDefault(&s.RestartPolicy, corev1.RestartPolicyAlways)
	setDefault(&s.DNSPolicy, corev1.DNSClusterFirst)
	setDefault(&s.SchedulerName, corev1.DefaultSchedulerName)
	setPointer(&s.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	setPointer(&s.SecurityContext, corev1.PodSecurityContext{})
	for i := range s.Containers {
		for j := range s.Containers[i].Ports {
			setDefault(&s.Containers[i].Ports[j].Protocol, corev1.ProtocolTCP)
		}
	}
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func setPointer[T any](field **T, value T) {
	if *field == nil {
		*field = ptr.To(value)
	}
}
