package core

import (
	"k8s.io/utils/ptr"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func classVariableUp(v clusterv1beta1.ClusterClassVariable) clusterv1.ClusterClassVariable {
	return clusterv1.ClusterClassVariable{
		Name:                      v.Name,
		Required:                  &v.Required,
		DeprecatedV1Beta1Metadata: clusterv1.ClusterClassVariableMetadata(v.Metadata),
		Schema:                    clusterv1.VariableSchema{OpenAPIV3Schema: schemaUp(v.Schema.OpenAPIV3Schema)},
	}
}

func classVariableDown(v clusterv1.ClusterClassVariable) clusterv1beta1.ClusterClassVariable {
	return clusterv1beta1.ClusterClassVariable{
		Name:     v.Name,
		Required: ptr.Deref(v.Required, false),
		Metadata: clusterv1beta1.ClusterClassVariableMetadata(v.DeprecatedV1Beta1Metadata),
		Schema:   clusterv1beta1.VariableSchema{OpenAPIV3Schema: schemaDown(v.Schema.OpenAPIV3Schema)},
	}
}

func statusVariableUp(v clusterv1beta1.ClusterClassStatusVariable) clusterv1.ClusterClassStatusVariable {
	return clusterv1.ClusterClassStatusVariable{
		Name:                v.Name,
		DefinitionsConflict: &v.DefinitionsConflict,
		Definitions: each(v.Definitions, func(d clusterv1beta1.ClusterClassStatusVariableDefinition) clusterv1.ClusterClassStatusVariableDefinition {
			return clusterv1.ClusterClassStatusVariableDefinition{
				From:                      d.From,
				Required:                  &d.Required,
				DeprecatedV1Beta1Metadata: clusterv1.ClusterClassVariableMetadata(d.Metadata),
				Schema:                    clusterv1.VariableSchema{OpenAPIV3Schema: schemaUp(d.Schema.OpenAPIV3Schema)},
			}
		}),
	}
}

func statusVariableDown(v clusterv1.ClusterClassStatusVariable) clusterv1beta1.ClusterClassStatusVariable {
	return clusterv1beta1.ClusterClassStatusVariable{
		Name:                v.Name,
		DefinitionsConflict: ptr.Deref(v.DefinitionsConflict, false),
		Definitions: each(v.Definitions, func(d clusterv1.ClusterClassStatusVariableDefinition) clusterv1beta1.ClusterClassStatusVariableDefinition {
			return clusterv1beta1.ClusterClassStatusVariableDefinition{
				From:     d.From,
				Required: ptr.Deref(d.Required, false),
				Metadata: clusterv1beta1.ClusterClassVariableMetadata(d.DeprecatedV1Beta1Metadata),
				Schema:   clusterv1beta1.VariableSchema{OpenAPIV3Schema: schemaDown(d.Schema.OpenAPIV3Schema)},
			}
		}),
	}
}

func schemaUp(s clusterv1beta1.JSONSchemaProps) clusterv1.JSONSchemaProps {
	return clusterv1.JSONSchemaProps{
		Description: s.Description, Example: s.Example, Type: s.Type, Properties: schemasUp(s.Properties),
		AdditionalProperties: indirect(s.AdditionalProperties, schemaUp), Required: s.Required, Items: indirect(s.Items, schemaUp),
		MaxItems: s.MaxItems, MinItems: s.MinItems, UniqueItems: optional(s.UniqueItems), Format: s.Format, MaxLength: s.MaxLength,
		MinLength: s.MinLength, Pattern: s.Pattern, Maximum: s.Maximum, ExclusiveMaximum: optional(s.ExclusiveMaximum),
		Minimum: s.Minimum, ExclusiveMinimum: optional(s.ExclusiveMinimum), XPreserveUnknownFields: optional(s.XPreserveUnknownFields),
		Enum: s.Enum, Default: s.Default,
	}
}

func schemaDown(s clusterv1.JSONSchemaProps) clusterv1beta1.JSONSchemaProps {
	return clusterv1beta1.JSONSchemaProps{
		Description: s.Description, Example: s.Example, Type: s.Type, Properties: schemasDown(s.Properties),
		AdditionalProperties: indirect(s.AdditionalProperties, schemaDown), Required: s.Required, Items: indirect(s.Items, schemaDown),
		MaxItems: s.MaxItems, MinItems: s.MinItems, UniqueItems: ptr.Deref(s.UniqueItems, false), Format: s.Format, MaxLength: s.MaxLength,
		MinLength: s.MinLength, Pattern: s.Pattern, Maximum: s.Maximum, ExclusiveMaximum: ptr.Deref(s.ExclusiveMaximum, false),
		Minimum: s.Minimum, ExclusiveMinimum: ptr.Deref(s.ExclusiveMinimum, false),
		XPreserveUnknownFields: ptr.Deref(s.XPreserveUnknownFields, false), Enum: s.Enum, Default: s.Default,
	}
}

func schemasUp(properties map[string]clusterv1beta1.JSONSchemaProps) map[string]clusterv1.JSONSchemaProps {
	if properties == nil {
		return nil
	}
	hub := map[string]clusterv1.JSONSchemaProps{}
	for name, property := range properties {
		hub[name] = schemaUp(property)
	}
	return hub
}

func schemasDown(properties map[string]clusterv1.JSONSchemaProps) map[string]clusterv1beta1.JSONSchemaProps {
	if properties == nil {
		return nil
	}
	old := map[string]clusterv1beta1.JSONSchemaProps{}
	for name, property := range properties {
		old[name] = schemaDown(property)
	}
	return old
}

// indirect maps what a pointer points to.
func indirect[A, B any](value *A, change func(A) B) *B {
	if value == nil {
		return nil
	}
	return ptr.To(change(*value))
}

func patchUp(p clusterv1beta1.ClusterClassPatch) clusterv1.ClusterClassPatch {
	hub := clusterv1.ClusterClassPatch{
		Name: p.Name, Description: p.Description, EnabledIf: ptr.Deref(p.EnabledIf, ""), Definitions: each(p.Definitions, patchDefinitionUp),
	}
	if e := p.External; e != nil {
		hub.External = &clusterv1.ExternalPatchDefinition{
			GeneratePatchesExtension:   ptr.Deref(e.GenerateExtension, ""),
			ValidateTopologyExtension:  ptr.Deref(e.ValidateExtension, ""),
			DiscoverVariablesExtension: ptr.Deref(e.DiscoverVariablesExtension, ""),
			Settings:                   e.Settings,
		}
	}
	return hub
}

func patchDown(p clusterv1.ClusterClassPatch) clusterv1beta1.ClusterClassPatch {
	old := clusterv1beta1.ClusterClassPatch{
		Name: p.Name, Description: p.Description, EnabledIf: optional(p.EnabledIf), Definitions: each(p.Definitions, patchDefinitionDown),
	}
	if e := p.External; e != nil {
		old.External = &clusterv1beta1.ExternalPatchDefinition{
			GenerateExtension:          optional(e.GeneratePatchesExtension),
			ValidateExtension:          optional(e.ValidateTopologyExtension),
			DiscoverVariablesExtension: optional(e.DiscoverVariablesExtension),
			Settings:                   e.Settings,
		}
	}
	return old
}

func patchDefinitionUp(d clusterv1beta1.PatchDefinition) clusterv1.PatchDefinition {
	match := clusterv1.PatchSelectorMatch{
		ControlPlane:          optional(d.Selector.MatchResources.ControlPlane),
		InfrastructureCluster: optional(d.Selector.MatchResources.InfrastructureCluster),
	}
	if m := d.Selector.MatchResources.MachineDeploymentClass; m != nil {
		match.MachineDeploymentClass = &clusterv1.PatchSelectorMatchMachineDeploymentClass{Names: m.Names}
	}
	if m := d.Selector.MatchResources.MachinePoolClass; m != nil {
		match.MachinePoolClass = &clusterv1.PatchSelectorMatchMachinePoolClass{Names: m.Names}
	}
	return clusterv1.PatchDefinition{
		Selector: clusterv1.PatchSelector{APIVersion: d.Selector.APIVersion, Kind: d.Selector.Kind, MatchResources: match},
		JSONPatches: each(d.JSONPatches, func(p clusterv1beta1.JSONPatch) clusterv1.JSONPatch {
			return clusterv1.JSONPatch{Op: p.Op, Path: p.Path, Value: p.Value,
				ValueFrom: indirect(p.ValueFrom, func(v clusterv1beta1.JSONPatchValue) clusterv1.JSONPatchValue {
					return clusterv1.JSONPatchValue{Variable: ptr.Deref(v.Variable, ""), Template: ptr.Deref(v.Template, "")}
				})}
		}),
	}
}

func patchDefinitionDown(d clusterv1.PatchDefinition) clusterv1beta1.PatchDefinition {
	match := clusterv1beta1.PatchSelectorMatch{
		ControlPlane:          ptr.Deref(d.Selector.MatchResources.ControlPlane, false),
		InfrastructureCluster: ptr.Deref(d.Selector.MatchResources.InfrastructureCluster, false),
	}
	if m := d.Selector.MatchResources.MachineDeploymentClass; m != nil {
		match.MachineDeploymentClass = &clusterv1beta1.PatchSelectorMatchMachineDeploymentClass{Names: m.Names}
	}
	if m := d.Selector.MatchResources.MachinePoolClass; m != nil {
		match.MachinePoolClass = &clusterv1beta1.PatchSelectorMatchMachinePoolClass{Names: m.Names}
	}
	return clusterv1beta1.PatchDefinition{
		Selector: clusterv1beta1.PatchSelector{APIVersion: d.Selector.APIVersion, Kind: d.Selector.Kind, MatchResources: match},
		JSONPatches: each(d.JSONPatches, func(p clusterv1.JSONPatch) clusterv1beta1.JSONPatch {
			return clusterv1beta1.JSONPatch{Op: p.Op, Path: p.Path, Value: p.Value,
				ValueFrom: indirect(p.ValueFrom, func(v clusterv1.JSONPatchValue) clusterv1beta1.JSONPatchValue {
					return clusterv1beta1.JSONPatchValue{Variable: optional(v.Variable), Template: optional(v.Template)}
				})}
		}),
	}
}
