# SPDX-License-Identifier: Apache-2.0

# What makes a whole JSON document unusable: text, NaN or an infinite value where a number belongs, and numbers that
# are not there at all (null is there: it says that the number does not exist).

# Without these a run has no power, whatever else is known of it.
essential_numbers <- c("p_a_w", "p_i_w", "delta_p_w", "ea_j_per_mbit")

#' Defects of run.json
#'
#' @return list of list(code, detail); the detail goes on from the file's name.
#' @noRd
run_defects <- function(doc) {
  windows <- doc[["windows"]]
  unlist(lapply(window_names, function(name) {
    bad_numbers(value_at(windows, name), c("t_start_s", "t_end_s"), paste0("windows.", name))
  }), recursive = FALSE)
}

#' Defects of result.json
#' @noRd
result_defects <- function(doc) {
  nodes <- doc[["nodes"]]
  if (!is.list(nodes)) {
    return(list(list(code = "half_written_run", detail = "lacks nodes")))
  }
  c(
    bad_numbers(doc, c("t_a_mbps", "u95_t_a_mbps", "loss_ratio", "achieved_ratio"), ""),
    bad_numbers(doc[["window"]], c("t_start_s", "t_end_s"), "window"),
    unlist(lapply(seq_along(nodes), function(i) node_defects(nodes[[i]], paste0("nodes[", i, "]"))), recursive = FALSE)
  )
}

node_defects <- function(node, where) {
  lacking <- function(fields, of) paste(fields[!fields %in% names(of)], collapse = ", ")
  essential <- lacking(essential_numbers, node)
  if (nzchar(essential)) {
    return(list(list(code = "half_written_run", detail = paste0("lacks ", essential, " in ", where))))
  }
  floor <- value_at(node, "floor")
  absent <- c(lacking(c(node_numbers, "floor"), node), if (is.list(floor)) lacking(floor_numbers, floor))
  absent <- paste(absent[nzchar(absent)], collapse = ", ")
  c(
    bad_numbers(node, c(node_numbers, "t_a_mbps"), where), bad_numbers(floor, floor_numbers, paste0(where, ".floor")),
    if (nzchar(absent)) list(list(code = "column_missing", detail = paste0("lacks ", absent, " in ", where)))
  )
}

# What stands under a name; NULL in whatever is no object.
value_at <- function(x, name) if (is.list(x)) x[[name]]

# One defect for each field whose value is neither a finite number nor null.
bad_numbers <- function(object, fields, where) {
  found <- lapply(fields, function(field) {
    value <- value_at(object, field)
    if (!is.null(value) && !(is.numeric(value) && length(value) == 1L && is.finite(value))) {
      shown <- encodeString(plain_text(c(unlist(value), "an empty list")[1], 20L), quote = "\"")
      path <- paste(c(where[nzchar(where)], field), collapse = ".")
      list(code = "not_a_number", detail = paste0("holds ", shown, " where the number ", path, " belongs"))
    }
  })
  Filter(Negate(is.null), found)
}
