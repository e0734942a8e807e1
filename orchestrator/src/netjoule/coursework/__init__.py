# SPDX-License-Identifier: Apache-2.0
"""Exercises for students: their questions, and answers checked against the student's own campaigns.

What is handed in is data of anybody: nothing of it is executed, and nothing outside its folder is read.
"""
