// Package report is what all measurements tell their figures with: medians and
// ratios of pairs, and how far they are meanwhile.
package report
