package clustertemplate

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"sigs.k8s.io/cluster-api/packages/config"
	"sigs.k8s.io/cluster-api/packages/template"
)

// PrintVariables prints the variables of a template. Those with flags are printed with the value they would get.
func PrintVariables(w io.Writer, variables []template.Variable, r Request, c *config.Config) error {
	var required, optional []template.Variable
	width := 0
	for _, v := range variables {
		if text := shownDefault(v, r, c); text != "" {
			optional = append(optional, template.Variable{Name: v.Name, Default: &text})
			width = max(width, len(v.Name))
			continue
		}
		required = append(required, v)
	}
	var lines []string
	if len(required) > 0 {
		lines = append(lines, "Required Variables:")
		for _, v := range required {
			lines = append(lines, "  - "+v.Name)
		}
	}
	if len(optional) > 0 {
		if len(required) > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, "Optional Variables:")
		for _, v := range optional {
			lines = append(lines, fmt.Sprintf("  - %-*s  (defaults to %s)", width, v.Name, *v.Default))
		}
	}
	for _, line := range append(lines, "") {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// shownDefault returns the value of an unset variable, "" if it is required.
func shownDefault(v template.Variable, r Request, c *config.Config) string {
	switch v.Name {
	case ClusterNameVariable:
		return r.ClusterName
	case NamespaceVariable:
		if r.TargetNamespace != "" {
			return r.TargetNamespace
		}
		return "current Namespace in the KubeConfig file"
	case KubernetesVersionVariable:
		if version := valueOf(r.KubernetesVersion, c, v.Name); version != "" {
			return version
		}
	case ControlPlaneMachinesVariable:
		return count(r.ControlPlaneMachines, c, v.Name, "1")
	case WorkerMachinesVariable:
		return count(r.WorkerMachines, c, v.Name, "0")
	}
	if v.Default == nil {
		return ""
	}
	// Quote plain text, but not numbers, lists and the like.
	var value any
	if err := json.Unmarshal([]byte(*v.Default), &value); err == nil {
		return *v.Default
	}
	return strconv.Quote(*v.Default)
}

func count(given *int64, c *config.Config, variable, fallback string) string {
	if given != nil {
		return strconv.FormatInt(*given, 10)
	}
	if value := valueOf("", c, variable); value != "" {
		return value
	}
	return fallback
}
