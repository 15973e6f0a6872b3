// Times in the reader's zone. Formats: t is date and time, w has the weekday too, c is the time only, s is date and
// time with seconds, d the date only.
const localTime = (at, format, lang, withYear, isToday) => {
  const options = isToday || format === "c" ? {} : { day: "numeric", month: "short" };
  const isOtherYear = format !== "d" && at.getFullYear() !== new Date().getFullYear();
  if (options.day && (withYear || isOtherYear)) options.year = "numeric";
  if (format === "w") options.weekday = "short";
  if (format !== "d") Object.assign(options, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  if (format === "s") options.second = "2-digit";
  return at.toLocaleString(lang, options);
};
