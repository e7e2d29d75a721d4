package variables

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	// maxRuleCost and maxSchemaCost limit the estimated cost of one rule, and of all rules of a schema, to those of
	// CustomResourceDefinitions.
	maxRuleCost   = 10_000_000
	maxSchemaCost = 100_000_000

	rulesField = "x-kubernetes-validations"
)

// reasons are the supported reasons of rules. An empty one is FieldValueInvalid.
var reasons = []clusterv1.FieldValueErrorReason{
	clusterv1.FieldValueDuplicate, clusterv1.FieldValueForbidden, clusterv1.FieldValueInvalid, clusterv1.FieldValueRequired,
}

func convertRules(rules []clusterv1.ValidationRule, path *field.Path) (apiextensions.ValidationRules, field.ErrorList) {
	var out apiextensions.ValidationRules
	var errs field.ErrorList
	for i, rule := range rules {
		converted := apiextensions.ValidationRule{
			Rule: rule.Rule, Message: rule.Message, MessageExpression: rule.MessageExpression, FieldPath: rule.FieldPath,
		}
		if rule.Reason != "" {
			reason := apiextensions.FieldValueErrorReason(rule.Reason)
			converted.Reason = &reason
			if !slices.Contains(reasons, rule.Reason) {
				errs = append(errs, field.NotSupported(path.Index(i).Child("reason"), rule.Reason, reasons))
			}
		}
		errs = append(errs, validateTexts(&rule, path.Index(i))...)
		out = append(out, converted)
	}
	return out, errs
}

// validateTexts validates a rule as far as that does not require CEL.
func validateTexts(rule *clusterv1.ValidationRule, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if strings.TrimSpace(rule.Rule) == "" {
		errs = append(errs, field.Required(path.Child("rule"), "the expression of the rule is required"))
	}
	for name, text := range map[string]string{"message": rule.Message, "fieldPath": rule.FieldPath} {
		switch {
		case text != "" && strings.TrimSpace(text) == "":
			errs = append(errs, field.Invalid(path.Child(name), text, "must not be blank"))
		case strings.ContainsAny(strings.TrimSpace(text), "\r\n"):
			errs = append(errs, field.Invalid(path.Child(name), text, "must not contain line breaks"))
		}
	}
	if rule.Message == "" && strings.ContainsAny(strings.TrimSpace(rule.Rule), "\r\n") {
		errs = append(errs, field.Required(path.Child("message"), "a rule with line breaks requires a message"))
	}
	return sorted(errs)
}

// ruleChecker compiles the rules of a schema, and adds up their costs.
type ruleChecker struct {
	environment *environment.EnvSet
	total       uint64
}

// position is where a part of a schema is.
type position struct {
	// count is how often the part can occur in a value; unlimited if bounded is false.
	count   uint64
	bounded bool
	// inList is set within lists. Their elements have no identity, so there is no oldSelf.
	inList bool
}

// times returns a position inside something that occurs up to limit times.
func (p position) times(limit *int64) position {
	if limit == nil {
		p.bounded = false
		return p
	}
	p.count = multiply(p.count, uint64(max(*limit, 0)))
	return p
}

// multiply returns the product, or the maximum if it is too large.
func multiply(a, b uint64) uint64 {
	if a != 0 && b > math.MaxUint64/a {
		return math.MaxUint64
	}
	return a * b
}

// checkRules validates the CEL rules of the schema of a value, at every depth.
func checkRules(value *structuralschema.Structural, path *field.Path) field.ErrorList {
	c := &ruleChecker{}
	errs := c.check(value, path, position{count: 1, bounded: true})
	if len(errs) == 0 && c.total > maxSchemaCost {
		errs = append(errs, field.Forbidden(path, tooExpensive("all rules of the schema together", c.total, maxSchemaCost)))
	}
	return errs
}

func tooExpensive(what string, cost, limit uint64) string {
	times := fmt.Sprintf("%.1f", float64(cost)/float64(limit))
	if cost/100 > limit {
		times = "more than 100"
	}
	return fmt.Sprintf("the estimated cost of %s is %s times the limit: make it simpler, or set maxItems, maxProperties and maxLength "+
		"of lists, maps and strings", what, times)
}

func (c *ruleChecker) check(s *structuralschema.Structural, path *field.Path, at position) field.ErrorList {
	errs := c.rules(s, path.Child(rulesField), at)
	limits := &structuralschema.ValueValidation{}
	if s.ValueValidation != nil {
		limits = s.ValueValidation
	}
	if s.Items != nil {
		below := at.times(limits.MaxItems)
		below.inList = true
		errs = append(errs, c.check(s.Items, path.Child("items"), below)...)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
		errs = append(errs, c.check(s.AdditionalProperties.Structural, path.Child("additionalProperties"), at.times(limits.MaxProperties))...)
	}
	for _, name := range propertyNames(s.Properties) {
		property := s.Properties[name]
		errs = append(errs, c.check(&property, path.Child("properties").Key(name), at)...)
	}
	return errs
}

// rules validates the rules of one part of a schema.
func (c *ruleChecker) rules(s *structuralschema.Structural, path *field.Path, at position) field.ErrorList {
	if len(s.XValidations) == 0 {
		return nil
	}
	if c.environment == nil {
		c.environment = environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	}
	results, err := cel.Compile(s, model.SchemaDeclType(s, false), celconfig.PerCallLimit, c.environment, cel.NewExpressionsEnvLoader())
	if err != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{},
			fmt.Sprintf("rules are not possible here: %v: define the fields of the value", err))}
	}
	var errs field.ErrorList
	for i := range results {
		rule, result := &s.XValidations[i], &results[i]
		errs = append(errs, c.rule(rule, result, path.Index(i), at)...)
		if rule.FieldPath != "" {
			if _, _, err := cel.ValidFieldPath(rule.FieldPath, s); err != nil {
				errs = append(errs, field.Invalid(path.Index(i).Child("fieldPath"), rule.FieldPath, err.Error()))
			}
		}
	}
	return errs
}

// rule validates a compiled rule.
func (c *ruleChecker) rule(
	rule *apiextensionsv1.ValidationRule, result *cel.CompilationResult, path *field.Path, at position,
) field.ErrorList {
	var errs field.ErrorList
	if result.Error != nil {
		errs = append(errs, field.Invalid(path.Child("rule"), rule.Rule, result.Error.Detail))
	}
	if result.MessageExpressionError != nil {
		errs = append(errs, field.Invalid(path.Child("messageExpression"), rule.MessageExpression, result.MessageExpressionError.Detail))
	}
	count := at.count
	if !at.bounded {
		count = result.MaxCardinality
	}
	for name, cost := range map[string]uint64{
		"rule": multiply(result.MaxCost, count), "messageExpression": result.MessageExpressionMaxCost,
	} {
		if cost > maxRuleCost {
			errs = append(errs, field.Forbidden(path.Child(name), tooExpensive("the expression", cost, maxRuleCost)))
		}
		c.total = min(c.total, math.MaxUint64-cost) + cost
	}
	if result.UsesOldSelf && at.inList {
		errs = append(errs,
			field.Invalid(path.Child("rule"), rule.Rule, "oldSelf must not be used within lists: their elements have no identity"))
	}
	return sorted(errs)
}

// obey evaluates the rules for a valid value; old may be nil. Rules with oldSelf are about changes: they are evaluated only if the value
// differs from old, and old is valid by the schema, too.
func (s *schema) obey(ctx context.Context, value any, old *apiextensionsv1.JSON, path *field.Path) field.ErrorList {
	if s.rules == nil {
		return nil
	}
	previous := s.previous(value, old)
	errs, _ := s.rules.Validate(ctx, path, nil, value, previous, celconfig.RuntimeCELCostBudget)
	return sorted(errs)
}

// previous returns oldSelf, nil if there is none.
func (s *schema) previous(value any, old *apiextensionsv1.JSON) any {
	if old == nil {
		return nil
	}
	previous, err := decode(old)
	if err != nil || equal(previous, value) || checkEffort(previous, s.structural, nil) != nil {
		return nil
	}
	if len(validation.ValidateCustomResource(nil, previous, s.validator)) > 0 {
		return nil
	}
	return previous
}
