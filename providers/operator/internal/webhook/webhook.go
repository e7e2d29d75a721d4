// Package webhook defaults and validates provider objects. What depends on other objects is checked by the controllers.
package webhook

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/providers/operator/internal/providerobject"
	"sigs.k8s.io/cluster-api/sdk/webhooks"
)

// +kubebuilder:webhook:verbs=create;update,path=/mutate-operator-cluster-x-k8s-io-v1alpha2-coreprovider,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,groups=operator.cluster.x-k8s.io,resources=coreproviders,versions=v1alpha2,name=default.coreprovider.operator.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-operator-cluster-x-k8s-io-v1alpha2-coreprovider,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=operator.cluster.x-k8s.io,resources=coreproviders,versions=v1alpha2,name=validation.coreprovider.operator.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/mutate-operator-cluster-x-k8s-io-v1alpha2-bootstrapprovider,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,groups=operator.cluster.x-k8s.io,resources=bootstrapproviders,versions=v1alpha2,name=default.bootstrapprovider.operator.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-operator-cluster-x-k8s-io-v1alpha2-bootstrapprovider,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=operator.cluster.x-k8s.io,resources=bootstrapproviders,versions=v1alpha2,name=validation.bootstrapprovider.operator.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/mutate-operator-cluster-x-k8s-io-v1alpha2-controlplaneprovider,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,groups=operator.cluster.x-k8s.io,resources=controlplaneproviders,versions=v1alpha2,name=default.controlplaneprovider.operator.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-operator-cluster-x-k8s-io-v1alpha2-controlplaneprovider,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=operator.cluster.x-k8s.io,resources=controlplaneproviders,versions=v1alpha2,name=validation.controlplaneprovider.operator.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/mutate-operator-cluster-x-k8s-io-v1alpha2-infrastructureprovider,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,groups=operator.cluster.x-k8s.io,resources=infrastructureproviders,versions=v1alpha2,name=default.infrastructureprovider.operator.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-operator-cluster-x-k8s-io-v1alpha2-infrastructureprovider,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=operator.cluster.x-k8s.io,resources=infrastructureproviders,versions=v1alpha2,name=validation.infrastructureprovider.operator.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/mutate-operator-cluster-x-k8s-io-v1alpha2-addonprovider,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,groups=operator.cluster.x-k8s.io,resources=addonproviders,versions=v1alpha2,name=default.addonprovider.operator.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-operator-cluster-x-k8s-io-v1alpha2-addonprovider,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=operator.cluster.x-k8s.io,resources=addonproviders,versions=v1alpha2,name=validation.addonprovider.operator.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/mutate-operator-cluster-x-k8s-io-v1alpha2-ipamprovider,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,groups=operator.cluster.x-k8s.io,resources=ipamproviders,versions=v1alpha2,name=default.ipamprovider.operator.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-operator-cluster-x-k8s-io-v1alpha2-ipamprovider,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=operator.cluster.x-k8s.io,resources=ipamproviders,versions=v1alpha2,name=validation.ipamprovider.operator.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/mutate-operator-cluster-x-k8s-io-v1alpha2-runtimeextensionprovider,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,groups=operator.cluster.x-k8s.io,resources=runtimeextensionproviders,versions=v1alpha2,name=default.runtimeextensionprovider.operator.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-operator-cluster-x-k8s-io-v1alpha2-runtimeextensionprovider,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=operator.cluster.x-k8s.io,resources=runtimeextensionproviders,versions=v1alpha2,name=validation.runtimeextensionprovider.operator.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1

// Register adds the webhooks of all kinds to a manager.
func Register(mgr ctrl.Manager) error {
	return errors.Join(
		register(mgr, &operatorv1.CoreProvider{}, operatorv1.CoreProviderKind),
		register(mgr, &operatorv1.BootstrapProvider{}, operatorv1.BootstrapProviderKind),
		register(mgr, &operatorv1.ControlPlaneProvider{}, operatorv1.ControlPlaneProviderKind),
		register(mgr, &operatorv1.InfrastructureProvider{}, operatorv1.InfrastructureProviderKind),
		register(mgr, &operatorv1.AddonProvider{}, operatorv1.AddonProviderKind),
		register(mgr, &operatorv1.IPAMProvider{}, operatorv1.IPAMProviderKind),
		register(mgr, &operatorv1.RuntimeExtensionProvider{}, operatorv1.RuntimeExtensionProviderKind),
	)
}

func register[T providerobject.Object](mgr ctrl.Manager, obj T, kind string) error {
	return webhooks.Register(mgr, obj, defaulter[T]{}, webhooks.Check(operatorv1.GroupVersion.WithKind(kind), validate[T]))
}

type defaulter[T providerobject.Object] struct{}

// Default implements Defaulter: references are to the provider's namespace.
func (defaulter[T]) Default(_ context.Context, o T) error {
	spec := o.GetSpec()
	if s := spec.ConfigSecret; s != nil && s.Namespace == "" {
		s.Namespace = o.GetNamespace()
	}
	if m := spec.AdditionalManifests; m != nil && m.Namespace == "" {
		m.Namespace = o.GetNamespace()
	}
	return nil
}

// validate returns what is wrong with a provider object. before is the zero value if it is created.
func validate[T providerobject.Object](_ context.Context, before, after T) field.ErrorList {
	path, spec := field.NewPath("spec"), after.GetSpec()
	var errs field.ErrorList
	if v := spec.Version; v != "" {
		if _, err := packages.ParseVersion(v); err != nil || v[0] != 'v' {
			errs = append(errs, field.Invalid(path.Child("version"), v, "must be a semantic version with the prefix v, such as v1.7.4"))
		}
	}
	if f := spec.FetchConfig; f != nil && f.Selector != nil {
		if _, err := metav1.LabelSelectorAsSelector(f.Selector); err != nil {
			errs = append(errs, field.Invalid(path.Child("fetchConfig", "selector"), f.Selector, err.Error()))
		}
	}
	errs = append(errs, containers(spec.Deployment, path.Child("deployment"))...)
	errs = append(errs, debugged(managerOf(before), spec.Manager, path.Child("manager"))...)
	errs = append(errs, durations(spec.Manager, path.Child("manager"))...)
	for name, additional := range spec.AdditionalDeployments {
		errs = append(errs, durations(additional.Manager, path.Child("additionalDeployments").Key(name).Child("manager"))...)
		errs = append(errs, containers(additional.Deployment, path.Child("additionalDeployments").Key(name).Child("deployment"))...)
	}
	return errs
}

func managerOf[T providerobject.Object](o T) *operatorv1.ManagerSpec {
	if any(o) == any(*new(T)) {
		return nil
	}
	return o.GetSpec().Manager
}

// debugged rejects changes of other fields while debug is true.
func debugged(before, after *operatorv1.ManagerSpec, path *field.Path) field.ErrorList {
	if before == nil || after == nil || !before.Debug || !after.Debug || equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, "other fields cannot be changed while debug is true: set it to false first")}
}

// containers rejects two entries for one container.
func containers(d *operatorv1.DeploymentSpec, path *field.Path) field.ErrorList {
	if d == nil {
		return nil
	}
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, c := range d.Containers {
		if seen[c.Name] {
			errs = append(errs, field.Duplicate(path.Child("containers").Index(i).Child("name"), c.Name))
		}
		seen[c.Name] = true
	}
	return errs
}

// durations rejects what is no duration.
func durations(m *operatorv1.ManagerSpec, path *field.Path) field.ErrorList {
	if m == nil {
		return nil
	}
	fields := map[*field.Path]operatorv1.Duration{
		path.Child("syncPeriod"):       ptr.Deref(m.SyncPeriod, ""),
		path.Child("gracefulShutDown"): ptr.Deref(m.GracefulShutdownTimeout, ""),
	}
	if e := m.LeaderElection; e != nil {
		election := path.Child("leaderElection")
		fields[election.Child("leaseDuration")], fields[election.Child("renewDeadline")], fields[election.Child("retryPeriod")] =
			e.LeaseDuration, e.RenewDeadline, e.RetryPeriod
	}
	var errs field.ErrorList
	for child, value := range fields {
		if _, err := value.Parse(); err != nil {
			errs = append(errs, field.Invalid(child, string(value), "must be a duration, such as 11m, or a number of seconds"))
		}
	}
	return errs
}
