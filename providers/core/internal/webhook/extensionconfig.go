package webhook

import (
	"context"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/webhooks"
)

// +kubebuilder:webhook:verbs=create;update,path=/mutate-runtime-cluster-x-k8s-io-v1alpha1-extensionconfig,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,groups=runtime.cluster.x-k8s.io,resources=extensionconfigs,versions=v1alpha1;v1beta2,name=default.extensionconfig.runtime.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-runtime-cluster-x-k8s-io-v1alpha1-extensionconfig,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=runtime.cluster.x-k8s.io,resources=extensionconfigs,versions=v1alpha1;v1beta2,name=validation.extensionconfig.runtime.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1

// ExtensionConfig defaults and validates ExtensionConfigs.
type ExtensionConfig struct {
	// Enabled is the feature gate RuntimeSDK. Without it, ExtensionConfigs can be neither created nor updated.
	Enabled bool
}

func (w ExtensionConfig) validator() webhooks.Validator[*runtimev1.ExtensionConfig] {
	return webhooks.Check(runtimev1.GroupVersion.WithKind(runtimev1.ExtensionConfigKind), w.validate)
}

// Default implements Defaulter.
func (ExtensionConfig) Default(_ context.Context, config *runtimev1.ExtensionConfig) error {
	if config.Spec.NamespaceSelector == nil {
		config.Spec.NamespaceSelector = &metav1.LabelSelector{}
	}
	if s := &config.Spec.ClientConfig.Service; s.IsDefined() {
		defaultInt32(&s.Port, runtimev1.DefaultServicePort)
	}
	return nil
}

// validate returns what is wrong with an ExtensionConfig.
func (w ExtensionConfig) validate(_ context.Context, _, config *runtimev1.ExtensionConfig) field.ErrorList {
	spec := field.NewPath("spec")
	if !w.Enabled {
		return field.ErrorList{field.Forbidden(spec, "ExtensionConfigs require the feature gate RuntimeSDK")}
	}
	var errs field.ErrorList
	// Names of extensions are <handler>.<ExtensionConfig>, so that the name must not have a dot.
	for _, message := range validation.IsDNS1123Label(config.Name) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), config.Name, message))
	}
	errs = append(errs, validateServer(config.Spec.ClientConfig, spec.Child("clientConfig"))...)
	if _, err := metav1.LabelSelectorAsSelector(config.Spec.NamespaceSelector); err != nil {
		errs = append(errs, field.Invalid(spec.Child("namespaceSelector"), config.Spec.NamespaceSelector, err.Error()))
	}
	return errs
}

// validateServer validates how to reach the server.
func validateServer(config runtimev1.ClientConfig, path *field.Path) field.ErrorList {
	switch {
	case config.URL == "" && !config.Service.IsDefined():
		return field.ErrorList{field.Required(path, "either url or service must be set")}
	case config.URL != "" && config.Service.IsDefined():
		return field.ErrorList{field.Forbidden(path, "only one of url and service must be set")}
	case config.URL != "":
		return validateURL(config.URL, path.Child("url"))
	}
	return validateService(&config.Service, path.Child("service"))
}

// validateURL validates a URL, without quoting it: it may have a password.
func validateURL(text string, path *field.Path) field.ErrorList {
	parsed, err := url.Parse(text)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "must be a URL, such as https://extension.example.com:9443")}
	case parsed.Scheme != "https":
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "must have the scheme https")}
	}
	return nil
}

func validateService(s *runtimev1.ServiceReference, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	check := func(name, value string, rule func(string) []string) {
		if value == "" {
			errs = append(errs, field.Required(path.Child(name), "must be set"))
			return
		}
		for _, message := range rule(value) {
			errs = append(errs, field.Invalid(path.Child(name), value, message))
		}
	}
	check("name", s.Name, validation.IsDNS1035Label)
	check("namespace", s.Namespace, validation.IsDNS1123Label)
	if s.Path != "" {
		if _, err := url.ParseRequestURI(s.Path); err != nil || s.Path[0] != '/' {
			errs = append(errs, field.Invalid(path.Child("path"), s.Path, "must be the path of a URL, and start with /"))
		}
	}
	if s.Port != nil {
		for _, message := range validation.IsValidPortNum(int(*s.Port)) {
			errs = append(errs, field.Invalid(path.Child("port"), *s.Port, message))
		}
	}
	return errs
}
