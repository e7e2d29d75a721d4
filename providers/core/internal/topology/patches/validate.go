package patches

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/exp/runtime/topologymutation/variable"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/variables"
	"sigs.k8s.io/cluster-api/providers/internal/gotemplate"
)

// prefixes are where inline patches can change templates.
var prefixes = []string{"/spec/", "/metadata/labels/", "/metadata/annotations/"}

// isChangeable reports whether inline patches can change what is at a path.
func isChangeable(path string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(path+"/", prefix) })
}

// validator validates the patches of one class.
type validator struct {
	parser     *gotemplate.Parser
	class      *clusterv1.ClusterClass
	variables  map[string]bool
	runtimeSDK bool
}

// Validate validates the patches of a class. runtimeSDK reports whether the feature gate for external patches is enabled.
func Validate(class *clusterv1.ClusterClass, runtimeSDK bool) field.ErrorList {
	if len(class.Spec.Patches) == 0 {
		return nil
	}
	v := &validator{parser: newParser(), class: class, runtimeSDK: runtimeSDK, variables: map[string]bool{}}
	for i := range class.Spec.Variables {
		v.variables[class.Spec.Variables[i].Name] = true
	}
	var errs field.ErrorList
	path := field.NewPath("spec", "patches")
	seen := map[string]bool{}
	for i := range class.Spec.Patches {
		patch, at := &class.Spec.Patches[i], path.Index(i)
		if seen[patch.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), patch.Name))
		}
		seen[patch.Name] = true
		errs = append(errs, validateName(patch.Name, at.Child("name"))...)
		errs = append(errs, v.patch(patch, at)...)
	}
	return errs
}

func validateName(name string, path *field.Path) field.ErrorList {
	switch name {
	case "":
		return field.ErrorList{field.Required(path, "the name of the patch is required")}
	case clusterv1.VariableDefinitionFromInline:
		return field.ErrorList{field.Invalid(path, name, "the name is reserved for the variables of the class itself: choose another name")}
	}
	return nil
}

func (v *validator) patch(patch *clusterv1.ClusterClassPatch, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if patch.EnabledIf != "" {
		errs = append(errs, v.template(patch.EnabledIf, path.Child("enabledIf"))...)
	}
	switch {
	case patch.Definitions == nil && patch.External == nil:
		return append(errs, field.Required(path, "set either definitions or external"))
	case patch.Definitions != nil && patch.External != nil:
		return append(errs, field.Invalid(path, patch.Name, "definitions and external are mutually exclusive: split the patch in two"))
	case patch.External != nil:
		return append(errs, v.external(patch.External, path.Child("external"))...)
	}
	for i := range patch.Definitions {
		definition, at := &patch.Definitions[i], path.Child("definitions").Index(i)
		errs = append(errs, v.selector(&definition.Selector, at.Child("selector"))...)
		for j := range definition.JSONPatches {
			errs = append(errs, v.jsonPatch(&definition.JSONPatches[j], at.Child("jsonPatches").Index(j))...)
		}
	}
	return errs
}

func (v *validator) external(external *clusterv1.ExternalPatchDefinition, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !v.runtimeSDK {
		errs = append(errs, field.Forbidden(path, "external patches require the feature gate RuntimeSDK"))
	}
	if external.GeneratePatchesExtension == "" && external.ValidateTopologyExtension == "" {
		errs = append(errs, field.Required(path, "set generatePatchesExtension, validateTopologyExtension or both"))
	}
	return errs
}

func (v *validator) template(source string, path *field.Path) field.ErrorList {
	_, err := v.parser.Parse(source)
	var limit *gotemplate.LimitError
	switch {
	case errors.As(err, &limit):
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	case err != nil:
		return field.ErrorList{field.Invalid(path, source, err.Error())}
	}
	return nil
}

func (v *validator) jsonPatch(patch *clusterv1.JSONPatch, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !slices.Contains(operations, patch.Op) {
		errs = append(errs, field.NotSupported(path.Child("op"), patch.Op, operations))
	}
	errs = append(errs, validatePath(patch, path.Child("path"))...)
	return append(errs, v.value(patch, path)...)
}

// validatePath allows array indexes only if they do not depend on the length of the array: to add at the start or the end.
func validatePath(patch *clusterv1.JSONPatch, path *field.Path) field.ErrorList {
	if !isChangeable(patch.Path) {
		return field.ErrorList{field.Invalid(path, patch.Path, "must be or start with /spec, /metadata/labels or /metadata/annotations: "+
			"patches can change nothing else of templates")}
	}
	for _, part := range parsePointer(patch.Path) {
		switch {
		case !isIndex(part):
		case operation(patch.Op) != add:
			return field.ErrorList{field.Invalid(path, patch.Path, fmt.Sprintf(
				"array indexes are not supported with %q, only with add: 0 or -", patch.Op))}
		case part != "0" && part != appendIndex:
			return field.ErrorList{field.Invalid(path, patch.Path, fmt.Sprintf(
				"array index %q is not supported: use 0 (insert at the start) or - (append)", part))}
		}
	}
	return nil
}

func (v *validator) value(patch *clusterv1.JSONPatch, path *field.Path) field.ErrorList {
	if operation(patch.Op) == remove {
		var errs field.ErrorList
		if patch.Value != nil {
			errs = append(errs, field.Forbidden(path.Child("value"), "must not be set with op remove"))
		}
		if patch.ValueFrom != nil {
			errs = append(errs, field.Forbidden(path.Child("valueFrom"), "must not be set with op remove"))
		}
		return errs
	}
	switch {
	case patch.Value == nil && patch.ValueFrom == nil:
		return field.ErrorList{field.Required(path, "set either value or valueFrom")}
	case patch.Value != nil && patch.ValueFrom != nil:
		return field.ErrorList{field.Invalid(path.Child("valueFrom"), "", "value and valueFrom are mutually exclusive: remove one of them")}
	case patch.Value != nil:
		if _, err := parseJSON(patch.Value.Raw); err != nil {
			return field.ErrorList{field.Invalid(path.Child("value"), string(patch.Value.Raw), err.Error())}
		}
		return nil
	}
	return v.valueFrom(patch.ValueFrom, path.Child("valueFrom"))
}

func (v *validator) valueFrom(from *clusterv1.JSONPatchValue, path *field.Path) field.ErrorList {
	switch {
	case from.Variable == "" && from.Template == "":
		return field.ErrorList{field.Required(path, "set either variable or template")}
	case from.Variable != "" && from.Template != "":
		return field.ErrorList{field.Invalid(path, "", "variable and template are mutually exclusive: remove one of them")}
	case from.Template != "":
		return v.template(from.Template, path.Child("template"))
	}
	at := path.Child("variable")
	l, err := variable.Parse(from.Variable)
	if err != nil {
		return field.ErrorList{field.Invalid(at, from.Variable, err.Error())}
	}
	if l.Name() == variables.Builtin {
		if !isBuiltin(l) {
			return field.ErrorList{field.Invalid(at, from.Variable, "unknown builtin variable")}
		}
		return nil
	}
	if !v.variables[l.Name()] {
		return field.ErrorList{field.Invalid(at, from.Variable, fmt.Sprintf("variable %q is not defined in spec.variables", l.Name()))}
	}
	return nil
}

// selector reports a selector that cannot match any template of the class.
func (v *validator) selector(s *clusterv1.PatchSelector, path *field.Path) field.ErrorList {
	match, at := &s.MatchResources, path.Child("matchResources")
	var errs field.ErrorList
	isInfrastructure, isControlPlane := ptr.Deref(match.InfrastructureCluster, false), ptr.Deref(match.ControlPlane, false)
	if !isInfrastructure && !isControlPlane && match.MachineDeploymentClass == nil && match.MachinePoolClass == nil {
		return field.ErrorList{
			field.Required(at, "select at least one of infrastructureCluster, controlPlane, machineDeploymentClass and machinePoolClass"),
		}
	}
	spec := &v.class.Spec
	if isInfrastructure && !refersTo(s, spec.Infrastructure.TemplateRef) {
		errs = append(errs, noMatch(s, at.Child("infrastructureCluster"), "spec.infrastructure.templateRef"))
	}
	if isControlPlane && !refersTo(s, spec.ControlPlane.TemplateRef) &&
		!refersTo(s, spec.ControlPlane.MachineInfrastructure.TemplateRef) {
		errs = append(errs, noMatch(s, at.Child("controlPlane"),
			"spec.controlPlane.templateRef or spec.controlPlane.machineInfrastructure.templateRef"))
	}
	if match.MachineDeploymentClass != nil {
		classes := map[string][]clusterv1.ClusterClassTemplateReference{}
		for i := range spec.Workers.MachineDeployments {
			class := &spec.Workers.MachineDeployments[i]
			classes[class.Class] = []clusterv1.ClusterClassTemplateReference{class.Bootstrap.TemplateRef, class.Infrastructure.TemplateRef}
		}
		errs = append(errs, classNames(s, match.MachineDeploymentClass.Names, classes, at.Child("machineDeploymentClass", "names"))...)
	}
	if match.MachinePoolClass != nil {
		classes := map[string][]clusterv1.ClusterClassTemplateReference{}
		for i := range spec.Workers.MachinePools {
			class := &spec.Workers.MachinePools[i]
			classes[class.Class] = []clusterv1.ClusterClassTemplateReference{class.Bootstrap.TemplateRef, class.Infrastructure.TemplateRef}
		}
		errs = append(errs, classNames(s, match.MachinePoolClass.Names, classes, at.Child("machinePoolClass", "names"))...)
	}
	return errs
}

// classNames reports patterns that match no class of workers with a template that the selector matches.
func classNames(
	s *clusterv1.PatchSelector, names []string, classes map[string][]clusterv1.ClusterClassTemplateReference, path *field.Path,
) field.ErrorList {
	if len(names) == 0 {
		return field.ErrorList{field.Required(path, `specify at least one class, or "*" for all of them`)}
	}
	var errs field.ErrorList
	for i, name := range names {
		if !validPattern(name) {
			errs = append(errs, field.Invalid(path.Index(i), name, `must be the name of a class, "*", or a name that starts or ends with one "*"`))
			continue
		}
		found := false
		for class, templates := range classes {
			found = found ||
				matches(name, class) && slices.ContainsFunc(templates,
					func(ref clusterv1.ClusterClassTemplateReference) bool { return refersTo(s, ref) })
		}
		if !found {
			errs = append(errs, noMatch(s, path.Index(i), fmt.Sprintf("the bootstrap and infrastructure templates of classes named %q", name)))
		}
	}
	return errs
}

func refersTo(s *clusterv1.PatchSelector, ref clusterv1.ClusterClassTemplateReference) bool {
	return ref.IsDefined() && ref.Kind == s.Kind && ref.APIVersion == s.APIVersion
}

func noMatch(s *clusterv1.PatchSelector, path *field.Path, where string) *field.Error {
	return field.Invalid(path, fmt.Sprintf("%s %s", s.APIVersion, s.Kind), "the selector's apiVersion and kind match none of "+where)
}
