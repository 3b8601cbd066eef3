// Package report is what all measurements tell their figures with: medians and
// ratios of pairs, rows in a file, and how far they are meanwhile.
package report
