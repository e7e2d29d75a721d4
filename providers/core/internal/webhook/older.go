package webhook

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	ipamv1alpha1 "sigs.k8s.io/cluster-api/api/ipam/v1alpha1"
	ipamv1beta1 "sigs.k8s.io/cluster-api/api/ipam/v1beta1"
	runtimev1alpha1 "sigs.k8s.io/cluster-api/api/runtime/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/webhooks"
)

// This file has what v1beta2 has no field for, or cannot tell from a field that is not set: namespaces and versions of references, parts of
// seconds, empty texts and objects, large numbers, and fields that only an older version has. What a client of that version writes there is
// defaulted and validated as written, before the object is converted and admitted like all others. What is wrong and unchanged does not
// prevent other changes.

// The defaults of fields that v1beta2 does not have.
const (
	defaultRevisionHistoryLimit    = 1
	defaultProgressDeadlineSeconds = 600
)

// minStartupTimeout is the minimum of nodeStartupTimeout, unless it is 0, which disables the timeout.
const minStartupTimeout = 30 * time.Second

// olderObject is a pointer to an object of an older version.
type olderObject interface {
	comparable
	client.Object
}

// defaults implement Defaulter.
type defaults[T client.Object] func(T)

// Default implements Defaulter.
func (f defaults[T]) Default(_ context.Context, obj T) error {
	if f != nil {
		f(obj)
	}
	return nil
}

// rules return what is wrong with an object.
type rules[T client.Object] func(T) field.ErrorList

// older returns the webhooks of a kind in an older version; it may have no defaults.
func older[T olderObject](empty T, kind schema.GroupVersionKind, d defaults[T], wrong rules[T]) webhooks.Older {
	validator := webhooks.Check(kind, func(_ context.Context, before, after T) field.ErrorList {
		var none T
		if before == none {
			return wrong(after)
		}
		return webhooks.WithoutOld(wrong(before), wrong(after))
	})
	return webhooks.OlderVersion(empty, d, validator)
}

// core returns a kind of the core group.
func core(kind string) schema.GroupVersionKind { return clusterv1beta1.GroupVersion.WithKind(kind) }

func olderCluster() webhooks.Older {
	return older(&clusterv1beta1.Cluster{}, core("Cluster"), func(c *clusterv1beta1.Cluster) {
		defaultNamespace(c.Namespace, c.Spec.InfrastructureRef, c.Spec.ControlPlaneRef)
	}, wrongCluster)
}

func wrongCluster(c *clusterv1beta1.Cluster) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validateNamespace(c.Spec.InfrastructureRef, c.Namespace, spec.Child("infrastructureRef"))
	errs = append(errs, validateNamespace(c.Spec.ControlPlaneRef, c.Namespace, spec.Child("controlPlaneRef"))...)
	t, path := c.Spec.Topology, spec.Child("topology")
	if t == nil {
		return errs
	}
	if t.Class == "" {
		errs = append(errs, field.Required(path.Child("class"), "the name of a ClusterClass is required"))
	}
	errs = append(errs, wrongTopologyCheck(t.ControlPlane.MachineHealthCheck, c.Namespace, path.Child("controlPlane"))...)
	if t.Workers == nil {
		return errs
	}
	for i := range t.Workers.MachineDeployments {
		at := path.Child("workers", "machineDeployments").Index(i)
		errs = append(errs, wrongTopologyCheck(t.Workers.MachineDeployments[i].MachineHealthCheck, c.Namespace, at)...)
	}
	return errs
}

// wrongTopologyCheck validates the health check of a topology, unless it only enables or disables that of the class.
func wrongTopologyCheck(check *clusterv1beta1.MachineHealthCheckTopology, namespace string, path *field.Path) field.ErrorList {
	if check == nil {
		return nil
	}
	c := &check.MachineHealthCheckClass
	if len(c.UnhealthyConditions) == 0 && len(c.UnhealthyMachineConditions) == 0 && c.MaxUnhealthy == nil && c.UnhealthyRange == nil &&
		c.NodeStartupTimeout == nil && c.RemediationTemplate == nil {
		return nil
	}
	return wrongCheck(c, namespace, path.Child("machineHealthCheck"))
}

func olderClusterClass() webhooks.Older {
	return older(&clusterv1beta1.ClusterClass{}, core("ClusterClass"), func(class *clusterv1beta1.ClusterClass) {
		for _, r := range classReferences(class) {
			defaultNamespace(class.Namespace, r.reference)
		}
		for _, c := range classChecks(class) {
			defaultNamespace(class.Namespace, c.check.RemediationTemplate)
		}
	}, func(class *clusterv1beta1.ClusterClass) field.ErrorList {
		var errs field.ErrorList
		for _, r := range classReferences(class) {
			errs = append(errs, validateNamespace(r.reference, class.Namespace, r.path)...)
		}
		for _, c := range classChecks(class) {
			errs = append(errs, wrongCheck(c.check, class.Namespace, c.path)...)
		}
		return append(errs, wrongNaming(class)...)
	})
}

// wrongNaming reports templates of names that are empty instead of not set.
func wrongNaming(class *clusterv1beta1.ClusterClass) field.ErrorList {
	var errs field.ErrorList
	add := func(template *string, at *field.Path) {
		if template != nil && *template == "" {
			errs = append(errs, field.Invalid(at.Child("namingStrategy", "template"), "", "must not be empty"))
		}
	}
	spec, path := &class.Spec, field.NewPath("spec")
	if n := spec.ControlPlane.NamingStrategy; n != nil {
		add(n.Template, path.Child("controlPlane"))
	}
	for i := range spec.Workers.MachineDeployments {
		if n := spec.Workers.MachineDeployments[i].NamingStrategy; n != nil {
			add(n.Template, path.Child("workers", "machineDeployments").Index(i))
		}
	}
	for i := range spec.Workers.MachinePools {
		if n := spec.Workers.MachinePools[i].NamingStrategy; n != nil {
			add(n.Template, path.Child("workers", "machinePools").Index(i))
		}
	}
	return errs
}

// classCheck is a health check in a class.
type classCheck struct {
	check *clusterv1beta1.MachineHealthCheckClass
	path  *field.Path
}

// classChecks returns the health checks of a class.
func classChecks(class *clusterv1beta1.ClusterClass) []classCheck {
	var all []classCheck
	add := func(check *clusterv1beta1.MachineHealthCheckClass, at *field.Path) {
		if check != nil {
			all = append(all, classCheck{check, at.Child("machineHealthCheck")})
		}
	}
	path := field.NewPath("spec")
	add(class.Spec.ControlPlane.MachineHealthCheck, path.Child("controlPlane"))
	for i := range class.Spec.Workers.MachineDeployments {
		add(class.Spec.Workers.MachineDeployments[i].MachineHealthCheck, path.Child("workers", "machineDeployments").Index(i))
	}
	return all
}

// classReference is a reference to a template in a class.
type classReference struct {
	reference *corev1.ObjectReference
	path      *field.Path
}

// classReferences returns the references of a class to templates, except those of health checks. They may be nil.
func classReferences(class *clusterv1beta1.ClusterClass) []classReference {
	spec := &class.Spec
	path, cp := field.NewPath("spec"), field.NewPath("spec", "controlPlane")
	all := []classReference{
		{spec.Infrastructure.Ref, path.Child("infrastructure", "ref")},
		{spec.ControlPlane.Ref, cp.Child("ref")},
	}
	if machines := spec.ControlPlane.MachineInfrastructure; machines != nil {
		all = append(all, classReference{machines.Ref, cp.Child("machineInfrastructure", "ref")})
	}
	workers := func(bootstrap, infrastructure *clusterv1beta1.LocalObjectTemplate, at *field.Path) {
		all = append(all, classReference{bootstrap.Ref, at.Child("template", "bootstrap", "ref")},
			classReference{infrastructure.Ref, at.Child("template", "infrastructure", "ref")})
	}
	for i := range spec.Workers.MachineDeployments {
		t := &spec.Workers.MachineDeployments[i].Template
		workers(&t.Bootstrap, &t.Infrastructure, path.Child("workers", "machineDeployments").Index(i))
	}
	for i := range spec.Workers.MachinePools {
		t := &spec.Workers.MachinePools[i].Template
		workers(&t.Bootstrap, &t.Infrastructure, path.Child("workers", "machinePools").Index(i))
	}
	return all
}

func olderMachine() webhooks.Older {
	return older(&clusterv1beta1.Machine{}, core("Machine"), func(m *clusterv1beta1.Machine) {
		defaultMachine(&m.Spec, m.Namespace)
	}, func(m *clusterv1beta1.Machine) field.ErrorList {
		// Machines of a MachinePool have no bootstrap data of their own: the pool has it.
		_, pooled := m.Labels[clusterv1beta1.MachinePoolNameLabel]
		return wrongMachine(&m.Spec, m.Namespace, !pooled, field.NewPath("spec"))
	})
}

func defaultMachine(spec *clusterv1beta1.MachineSpec, namespace string) {
	defaultNamespace(namespace, spec.Bootstrap.ConfigRef, &spec.InfrastructureRef)
}

// wrongMachine validates a Machine, or the template of a MachinePool. References and bootstrap data of other templates are not validated.
func wrongMachine(spec *clusterv1beta1.MachineSpec, namespace string, needsData bool, path *field.Path) field.ErrorList {
	errs := wrongVersion(spec, path)
	if needsData && spec.Bootstrap.ConfigRef == nil && spec.Bootstrap.DataSecretName == nil {
		errs = append(errs, field.Required(path.Child("bootstrap"), "either configRef or dataSecretName must be set"))
	}
	errs = append(errs, validateNamespace(spec.Bootstrap.ConfigRef, namespace, path.Child("bootstrap", "configRef"))...)
	return append(errs, validateNamespace(&spec.InfrastructureRef, namespace, path.Child("infrastructureRef"))...)
}

// wrongVersion reports a version that is empty instead of not set.
func wrongVersion(spec *clusterv1beta1.MachineSpec, path *field.Path) field.ErrorList {
	if spec.Version == nil || *spec.Version != "" {
		return nil
	}
	return field.ErrorList{invalidVersion("", path.Child("version"))}
}

func olderMachineSet() webhooks.Older {
	return older(&clusterv1beta1.MachineSet{}, core("MachineSet"), nil, func(set *clusterv1beta1.MachineSet) field.ErrorList {
		return wrongVersion(&set.Spec.Template.Spec, field.NewPath("spec", "template", "spec"))
	})
}

func olderMachineDeployment() webhooks.Older {
	return older(&clusterv1beta1.MachineDeployment{}, core("MachineDeployment"), func(md *clusterv1beta1.MachineDeployment) {
		defaultInt32(&md.Spec.RevisionHistoryLimit, defaultRevisionHistoryLimit)
		defaultInt32(&md.Spec.ProgressDeadlineSeconds, defaultProgressDeadlineSeconds)
	}, func(md *clusterv1beta1.MachineDeployment) field.ErrorList {
		spec := field.NewPath("spec")
		return append(validateNotNegative(md.Spec.RevisionHistoryLimit, spec.Child("revisionHistoryLimit")),
			wrongVersion(&md.Spec.Template.Spec, spec.Child("template", "spec"))...)
	})
}

func olderMachinePool() webhooks.Older {
	return older(&clusterv1beta1.MachinePool{}, core("MachinePool"), func(p *clusterv1beta1.MachinePool) {
		defaultMachine(&p.Spec.Template.Spec, p.Namespace)
	}, func(p *clusterv1beta1.MachinePool) field.ErrorList {
		spec, path := &p.Spec.Template.Spec, field.NewPath("spec", "template", "spec")
		errs := wrongMachine(spec, p.Namespace, true, path)
		if ref := spec.InfrastructureRef; ref.APIVersion == "" || ref.Kind == "" || ref.Name == "" {
			errs = append(errs, field.Required(path.Child("infrastructureRef"),
				"must reference an infrastructure machine pool, with apiVersion, kind and name"))
		}
		return errs
	})
}

func olderMachineHealthCheck() webhooks.Older {
	return older(&clusterv1beta1.MachineHealthCheck{}, core("MachineHealthCheck"), func(mhc *clusterv1beta1.MachineHealthCheck) {
		defaultNamespace(mhc.Namespace, mhc.Spec.RemediationTemplate)
	}, func(mhc *clusterv1beta1.MachineHealthCheck) field.ErrorList {
		return wrongCheck(&clusterv1beta1.MachineHealthCheckClass{
			UnhealthyConditions: mhc.Spec.UnhealthyConditions, UnhealthyMachineConditions: mhc.Spec.UnhealthyMachineConditions,
			NodeStartupTimeout: mhc.Spec.NodeStartupTimeout, RemediationTemplate: mhc.Spec.RemediationTemplate,
		}, mhc.Namespace, field.NewPath("spec"))
	})
}

// wrongCheck validates what a MachineHealthCheck, a class and a topology define alike.
func wrongCheck(c *clusterv1beta1.MachineHealthCheckClass, namespace string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(c.UnhealthyConditions) == 0 && len(c.UnhealthyMachineConditions) == 0 && c.NodeStartupTimeout == nil {
		errs = append(errs, field.Required(path.Child("unhealthyConditions"), "at least one condition or nodeStartupTimeout is required"))
	}
	if t := c.NodeStartupTimeout; t != nil && t.Duration != 0 && t.Duration < minStartupTimeout {
		errs = append(errs, field.Invalid(path.Child("nodeStartupTimeout"), t.Duration.String(),
			fmt.Sprintf("must be at least %s, or 0 to disable the timeout", minStartupTimeout)))
	}
	timeout := func(t metav1.Duration, at *field.Path) {
		if t.Duration < 0 {
			errs = append(errs, field.Invalid(at.Child("timeout"), t.Duration.String(), "must not be negative"))
		}
	}
	for i := range c.UnhealthyConditions {
		timeout(c.UnhealthyConditions[i].Timeout, path.Child("unhealthyConditions").Index(i))
	}
	for i := range c.UnhealthyMachineConditions {
		timeout(c.UnhealthyMachineConditions[i].Timeout, path.Child("unhealthyMachineConditions").Index(i))
	}
	return append(errs, validateNamespace(c.RemediationTemplate, namespace, path.Child("remediationTemplate"))...)
}

func olderExtensionConfig() webhooks.Older {
	kind := runtimev1alpha1.GroupVersion.WithKind("ExtensionConfig")
	return older(&runtimev1alpha1.ExtensionConfig{}, kind, nil, func(config *runtimev1alpha1.ExtensionConfig) field.ErrorList {
		c, path := &config.Spec.ClientConfig, field.NewPath("spec", "clientConfig")
		var errs field.ErrorList
		if c.URL != nil && *c.URL == "" {
			errs = append(errs, field.Invalid(path.Child("url"), "", "must be a URL, such as https://extension.example.com:9443"))
		}
		if c.Service != nil && c.Service.Path != nil && *c.Service.Path == "" {
			errs = append(errs, field.Invalid(path.Child("service", "path"), "", "must be the path of a URL, and start with /"))
		}
		return errs
	})
}

func olderIPAddress() webhooks.Older {
	kind := ipamv1beta1.GroupVersion.WithKind("IPAddress")
	return older(&ipamv1beta1.IPAddress{}, kind, nil, func(address *ipamv1beta1.IPAddress) field.ErrorList {
		return wrongPrefix(address.Spec.Prefix)
	})
}

func oldestIPAddress() webhooks.Older {
	kind := ipamv1alpha1.GroupVersion.WithKind("IPAddress")
	return older(&ipamv1alpha1.IPAddress{}, kind, nil, func(address *ipamv1alpha1.IPAddress) field.ErrorList {
		return wrongPrefix(address.Spec.Prefix)
	})
}

// wrongPrefix reports a number that the field of v1beta2 cannot have.
func wrongPrefix(prefix int) field.ErrorList {
	if prefix == int(int32(prefix)) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "prefix"), prefix, "must be between 0 and 128")}
}

// defaultNamespace sets the namespace of references that have none. They may be nil.
func defaultNamespace(namespace string, refs ...*corev1.ObjectReference) {
	for _, ref := range refs {
		if ref != nil && ref.Namespace == "" {
			ref.Namespace = namespace
		}
	}
}

// validateNamespace reports a reference to another namespace than that of the referring object. No namespace is valid.
func validateNamespace(ref *corev1.ObjectReference, namespace string, path *field.Path) field.ErrorList {
	if ref == nil || ref.Namespace == "" || ref.Namespace == namespace {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child("namespace"), ref.Namespace,
		fmt.Sprintf("must be %q, the namespace of the object that refers to it", namespace))}
}
